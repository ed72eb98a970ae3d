"""Workers for each test, with a place for their effects."""

import os

import pytest
from celery_workers import FOLDER, Workers


@pytest.fixture
def workers(broker, tmp_path):
    effects = tmp_path / "effects"
    effects.mkdir()
    environment = {
        **os.environ,
        "CELERY_BROKER": broker.uri(),
        "EFFECTS": str(effects),
        "PYTHONPATH": str(FOLDER),
        "C_FORCE_ROOT": "1",
    }
    started = Workers(environment, tmp_path)
    started.effects = effects
    yield started
    started.stop()
