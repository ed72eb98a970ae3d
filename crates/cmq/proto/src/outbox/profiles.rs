//! The options of destinations. Nearly all of an endpoint's destinations have the same, so each holds
//! only their number.

use rustc_hash::FxHashMap;
use slab::Slab;

use crate::config::DestinationOptions;

/// Which of an endpoint's different options a destination has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProfileId(u32);

#[derive(Debug)]
struct Profile {
    options: DestinationOptions,
    destinations: u32,
}

/// All different options, each once. The path's size is not among them: it is its destination's own.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    profiles: Slab<Profile>,
    ids: FxHashMap<DestinationOptions, ProfileId>,
}

impl Profiles {
    /// Counts one destination more with these options, and returns their number.
    pub(crate) fn share(&mut self, options: DestinationOptions) -> ProfileId {
        let options = DestinationOptions { path_bytes: 0, ..options };
        if let Some(id) = self.ids.get(&options) {
            self.profiles[id.0 as usize].destinations += 1;
            return *id;
        }
        let at = self.profiles.insert(Profile { options: options.clone(), destinations: 1 });
        let id = ProfileId(u32::try_from(at).expect("there are fewer options than destinations"));
        self.ids.insert(options, id);
        id
    }

    /// A destination with these options is gone.
    pub(crate) fn release(&mut self, id: ProfileId) {
        let profile = &mut self.profiles[id.0 as usize];
        profile.destinations -= 1;
        if profile.destinations == 0 {
            let profile = self.profiles.remove(id.0 as usize);
            self.ids.remove(&profile.options);
        }
    }

    /// Returns the options, with a path of zero bytes.
    pub(crate) fn get(&self, id: ProfileId) -> &DestinationOptions {
        &self.profiles[id.0 as usize].options
    }
}
