//! What is drawn, and how it is spread.

use fastrand::Rng;

/// Tail of the producers' rates: at 1.5 the largest tenth sends half of all.
const TAIL: f64 = 1.5;
/// By how much a burst multiplies a producer's rate, least and most.
const BURST: (f64, f64) = (2.0, 4.0);
/// By how much a burst of the whole queue does.
const FLASH: (f64, f64) = (1.2, 1.6);

/// Draws a time until something that comes by itself, seconds.
pub(super) fn waiting(rng: &mut Rng, mean_s: f64) -> f64 {
    -mean_s * (1.0 - rng.f64()).ln()
}

/// Draws a producer's rate: Pareto with that mean before it is cut off at `most`.
pub(super) fn rate(rng: &mut Rng, mean: f64, most: f64) -> f32 {
    let least = mean * (TAIL - 1.0) / TAIL;
    (least * (1.0 - rng.f64()).powf(-1.0 / TAIL)).min(most) as f32
}

pub(super) fn burst(rng: &mut Rng) -> f32 {
    between(rng, BURST) as f32
}

pub(super) fn flash(rng: &mut Rng) -> f64 {
    between(rng, FLASH)
}

pub(super) fn between(rng: &mut Rng, (least, most): (f64, f64)) -> f64 {
    least + (most - least) * rng.f64()
}
