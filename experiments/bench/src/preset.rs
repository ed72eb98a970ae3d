//! The parameters of a preset, settled.

use crate::args::{ExchangeType, PaperArgs, Preset};
use crate::error::BenchError;

const SIZES: [usize; 11] = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576];

/// A preset with its parameters settled.
#[derive(Debug, Clone)]
pub(crate) struct Paper {
    pub preset: Preset,
    /// Independent publisher-consumer pairs.
    pub pairs: u32,
    /// Consumers of each publisher's messages.
    pub fanout: u32,
    /// Consumers whose binding does not match.
    pub strangers: u32,
    pub sizes: Vec<usize>,
    messages: Option<u64>,
}

impl Paper {
    pub(crate) fn new(preset: Preset, args: &PaperArgs) -> Result<Self, BenchError> {
        let refuse = |words: &str| Err(BenchError::Arguments(words.to_owned()));
        if !(1..=10_000).contains(&args.pairs) || !(1..=10_000).contains(&args.fanout_factor) {
            return refuse("--pairs and --fanout-factor take 1 to 10,000");
        }
        if args.patterns > 100_000 {
            return refuse("--patterns takes at most 100,000");
        }
        if args.messages_per_size == Some(0) {
            return refuse("--messages-per-size 0 would measure nothing");
        }
        let only = |wanted: Preset, value: u32, otherwise: u32| {
            if preset == wanted { value } else { otherwise }
        };
        Ok(Self {
            preset,
            pairs: only(Preset::DeMpmc, args.pairs, 1),
            fanout: only(Preset::FeSpmc, args.fanout_factor, 1),
            strangers: only(Preset::TeSpsc, args.patterns, 0),
            sizes: if args.sizes.is_empty() { SIZES.to_vec() } else { args.sizes.clone() },
            messages: args.messages_per_size,
        })
    }

    pub(crate) const fn exchange_type(&self) -> ExchangeType {
        match self.preset {
            Preset::DeSpsc | Preset::DeMpmc | Preset::DePp => ExchangeType::Direct,
            Preset::FeSpmc => ExchangeType::Fanout,
            Preset::TeSpsc => ExchangeType::Topic,
        }
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self.preset {
            Preset::DeSpsc => "DE-SPSC",
            Preset::DeMpmc => "DE-MPMC",
            Preset::DePp => "DE-PP",
            Preset::FeSpmc => "FE-SPMC",
            Preset::TeSpsc => "TE-SPSC",
        }
    }

    pub(crate) fn is_ping_pong(&self) -> bool {
        self.preset == Preset::DePp
    }

    /// Messages that each publisher sends of a size: some 64 MiB of deliveries, but not so few
    /// that nothing can be said nor so many that small ones take for ever.
    pub(crate) fn messages_per_publisher(&self, size: usize) -> u64 {
        let budget = 64 * 1024 * 1024 / u64::from(self.fanout * self.pairs) / size.max(1) as u64;
        let at_most = if self.is_ping_pong() { 2_000 } else { 20_000 };
        self.messages.unwrap_or_else(|| budget.clamp(32, at_most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paper(preset: Preset) -> Paper {
        let args = PaperArgs {
            sizes: Vec::new(),
            messages_per_size: None,
            pairs: 4,
            fanout_factor: 8,
            patterns: 64,
        };
        Paper::new(preset, &args).unwrap()
    }

    #[test]
    fn each_preset_takes_only_its_own_parameter() {
        let shape = |preset| {
            let paper = paper(preset);
            (paper.name(), paper.exchange_type().name(), paper.pairs, paper.fanout, paper.strangers)
        };
        assert_eq!(shape(Preset::DeSpsc), ("DE-SPSC", "direct", 1, 1, 0));
        assert_eq!(shape(Preset::DeMpmc), ("DE-MPMC", "direct", 4, 1, 0));
        assert_eq!(shape(Preset::DePp), ("DE-PP", "direct", 1, 1, 0));
        assert_eq!(shape(Preset::FeSpmc), ("FE-SPMC", "fanout", 1, 8, 0));
        assert_eq!(shape(Preset::TeSpsc), ("TE-SPSC", "topic", 1, 1, 64));
    }

    #[test]
    fn the_sizes_go_from_one_byte_to_one_mebibyte() {
        let sizes = paper(Preset::DeSpsc).sizes;
        assert_eq!((sizes.first(), sizes.last()), (Some(&1), Some(&1_048_576)));
        assert!(sizes.is_sorted());
    }

    #[test]
    fn large_messages_are_fewer_and_ping_pong_takes_fewer_still() {
        assert_eq!(paper(Preset::DeSpsc).messages_per_publisher(1), 20_000);
        assert_eq!(paper(Preset::DeSpsc).messages_per_publisher(1_048_576), 64);
        assert_eq!(paper(Preset::FeSpmc).messages_per_publisher(1_048_576), 32);
        assert_eq!(paper(Preset::DePp).messages_per_publisher(1), 2_000);
        let given = Paper { messages: Some(7), ..paper(Preset::DePp) };
        assert_eq!(given.messages_per_publisher(1), 7);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let args = PaperArgs {
            sizes: vec![1],
            messages_per_size: None,
            pairs: 0,
            fanout_factor: 8,
            patterns: 0,
        };
        let error = Paper::new(Preset::DeMpmc, &args).unwrap_err().to_string();
        assert!(error.contains("--pairs"), "{error}");
        let args = PaperArgs { pairs: 1, messages_per_size: Some(0), ..args };
        let error = Paper::new(Preset::DeMpmc, &args).unwrap_err().to_string();
        assert!(error.contains("--messages-per-size"), "{error}");
    }
}
