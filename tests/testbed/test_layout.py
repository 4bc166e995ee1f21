"""Names and lines for the kernel, made without it."""

from __future__ import annotations

from testbed.layout import Layout
from testbed.networks import one_wire, two_domains


def test_a_wire_without_delay_is_a_token_bucket_at_both_ends():
    layout = Layout(one_wire(625_000, queue_packets=20), {})
    assert layout.emulated_wires() == ""
    # 8 * 625 000 bit/s; 20 frames of 1514 bytes.
    line = "qdisc add dev w0{} root tbf rate 5000000bit burst 3028 limit 30280\n"
    assert [layout.buckets(node) for node in (0, 1)] == [line.format("t"), line.format("h")]


def test_a_wire_with_delay_or_loss_is_carried_by_the_link_program():
    delayed = Layout(one_wire(625_000, delay_s=0.02), {})
    assert delayed.buckets(0) == ""
    assert delayed.emulated_wires() == (
        "w0t w0h 625000.0 0.02 50 0.0 1000003\nw0h w0t 625000.0 0.02 50 0.0 1000004\n"
    )
    assert (
        Layout(one_wire(625_000), {1: 0.5}).emulated_wires().splitlines()[1].endswith("0.5 1000004")
    )


def test_routes_are_those_of_the_network():
    """From B0, host S1's router, D is behind A0 and the relay behind B1, at addresses by number."""
    setting = two_domains()
    layout = Layout(setting.network, {})
    node = setting.network.node_names.index
    lines = layout.node_set_up(node("B0")).splitlines()
    to = {name: layout.address(node(name)) for name in ("A0", "B1", "D", "K1")}
    found = {line.split()[2]: line.split()[4] for line in lines if line.startswith("route")}
    assert found[f"{to['D']}/32"] == to["A0"]
    assert found[f"{to['K1']}/32"] == to["B1"]
    assert len(found) == setting.network.n_nodes - 1


def test_no_interface_is_named_as_what_iproute2_abbreviates():
    layout = Layout(two_domains().network, {})
    names = [name for cable in layout.cables for _, name in cable.ends]
    assert len(set(names)) == len(names) == layout.network.n_wires
    assert all(name.startswith("w") and 3 <= len(name) <= 15 for name in names)
