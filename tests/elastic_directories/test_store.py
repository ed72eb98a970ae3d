"""The directory's own tests of a metadata store, against a real one."""


def test_it_does_what_every_store_has_to(metadata):
    metadata.check()
