//! Rendezvous hashing: who of several front-ends a thing belongs to, so that all who know the same members say the same, and
//! a member that comes or goes takes or leaves its own part and moves nothing else.

use uuid::Uuid;

use crate::splitmix::finalize;

/// Returns how much a member wants a thing: the one that wants it most has it. It is the same in
/// every version.
pub(crate) fn score(thing: Uuid, member: Uuid) -> u64 {
    let fold = |id: Uuid| {
        let bits = id.as_u128();
        mix((bits >> 64) as u64 ^ mix(bits as u64))
    };
    mix(fold(thing) ^ fold(member).rotate_left(32))
}

/// Returns who of the members has a thing; `None`: there are none.
pub(crate) fn owner(thing: Uuid, members: impl IntoIterator<Item = Uuid>) -> Option<Uuid> {
    members.into_iter().max_by_key(|member| (score(thing, *member), *member))
}

/// Returns a whole step of SplitMix64, so that zero is mixed, too.
const fn mix(bits: u64) -> u64 {
    finalize(bits.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(count: u128) -> Vec<Uuid> {
        // Neighbours, as those of one millisecond are.
        (1..=count).map(Uuid::from_u128).collect()
    }

    #[test]
    fn things_are_shared_evenly() {
        let members = ids(5);
        let mut counts = [0; 5];
        for thing in ids(10_000) {
            let owner = owner(thing, members.iter().copied()).unwrap();
            counts[owner.as_u128() as usize - 1] += 1;
        }
        assert!(counts.iter().all(|count| (1_800..2_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_member_that_goes_leaves_only_its_own_part() {
        let (members, gone) = (ids(5), Uuid::from_u128(3));
        for thing in ids(1_000) {
            let before = owner(thing, members.iter().copied());
            let after = owner(thing, members.iter().copied().filter(|member| *member != gone));
            assert!(before == after || before == Some(gone));
        }
        assert_eq!(owner(gone, []), None);
    }

    #[test]
    fn a_score_never_changes() {
        let score = score(Uuid::from_u128(1 << 80 | 7), Uuid::from_u128(1 << 100 | 9));
        assert_eq!(score, SCORE);
    }

    /// Front-ends of different versions have to agree.
    const SCORE: u64 = 1_259_926_324_177_142_638;
}
