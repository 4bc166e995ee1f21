"""An event as a policy of C2SP, line by line."""

from __future__ import annotations

from instances.events import event_of, key_of

from datacollect.bistro.formats.event.policy import policy_of
from datacollect.bistro.formats.log.checkpoints import log_key, witness_key


def test_a_policy_names_logs_witnesses_and_quorum():
    event = event_of(n_witnesses=3, n_services=1, quorum=2)
    log = log_key("s0.example/0000000000000001", key_of("s0").public).text
    keys = [witness_key(f"w{i}.example", key_of(f"w{i}.example").public).text for i in range(3)]
    assert policy_of(event).splitlines() == [
        f"log {log} https://s0.example",
        *(f"witness w{i} {key} https://w{i}.example" for i, key in enumerate(keys)),
        "group witnesses 2 w0 w1 w2",
        "quorum witnesses",
    ]
