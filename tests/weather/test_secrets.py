"""Secrets of the environment and of headers are in no byte of the store, whoever's spans they were in."""

import pytest

from spanreplay.store.store import Store
from support.size import FULL
from weather.station import Station, agent

SECRETS = {
    "OPENAI_API_KEY": "sk-proj-9fKq2mXv7LwT4bNz8RdY1cHs",
    "SERVICE_TOKEN": "zT7pQ4wLm9XvB2nKd8Rf",
    "DATABASE_PASSWORD": "correct-horse-battery-9281",
}


@pytest.mark.parametrize("setup", ["plain", "limited", "off", "logfire", "ours"] if FULL else ["logfire"])
@pytest.mark.parametrize("by_record", [False, True] if FULL else [False])
def test_no_byte_of_the_store_is_a_secret(station: Station, setup: str, by_record: bool) -> None:
    command = agent("confidant", station.model.url, setup)
    done = station.record(command, SECRETS) if by_record else station.fork(command, {**SECRETS, "START": str(station.store)})
    assert (done.code, done.out) == (0, "refused\n"), str(done)
    assert any(SECRETS["OPENAI_API_KEY"] in value for seen in station.model.requests[-1:] for value in seen.headers.values())
    for loaded in (False, True):
        if loaded:
            assert len(station.kept().one().steps) == 2
        for file in station.store.rglob("*"):
            if file.is_file():
                data = file.read_bytes()
                assert not [name for name, secret in SECRETS.items() if secret.encode() in data], file
    with Store.open(station.store) as store:  # the database may compress what it holds
        texts = [str(row) for table in ("spans", "blobs", "runs", "steps", "logs") for row in store.query(f"FROM {table}").rows]
    assert not [name for name, secret in SECRETS.items() if any(secret in text for text in texts)]
