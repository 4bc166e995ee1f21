"""Many operators, each with tests of its own, hosts that crash, a network that loses messages.

All is simulated: a seed gives the same run everywhere. Messages take up to two seconds, so they
overtake each other; some are lost. Operators and hosts die at any instant, and of a connection
that ends the other end hears late, or never.

`python tests/measuring/plan/lease_simulation.py 10000` runs so many seeds.
"""

from __future__ import annotations

import heapq
import itertools
import random
import sys
from dataclasses import dataclass, field

from datacollect.measuring.plan.host_lease import HostLease, Wait
from datacollect.measuring.plan.lease_taking import (
    Ask,
    Ended,
    GiveBack,
    LeaseTaking,
    Ready,
    Waiting,
)

HORIZON_S = 100_000.0
PATIENCE_S = 20_000.0
TEST_S = 15.0
HOLD_S = 60.0
LONGEST_S = 90.0


@dataclass
class Operator:
    """A process that measures, test after test."""

    name: str
    tests: list[tuple[str, ...]]
    alive: bool = True
    taking: LeaseTaking | None = None
    done: int = 0
    gave_up: int = 0


@dataclass
class World:
    """Hosts, operators and what is under way between them."""

    seed: int
    now_s: float = 0.0
    faults: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.random = random.Random(self.seed)
        self.count = itertools.count()
        self.events = []
        self.loss = self.random.choice([0.0, 0.02, 0.2])
        self.hosts = {f"f{i}": HostLease(LONGEST_S) for i in range(self.random.randint(2, 6))}
        self.up = dict.fromkeys(self.hosts, True)
        # What each host tests: (from, to, token), the end cut where the host dies.
        self.tested = {host: [] for host in self.hosts}
        self.running = {}
        self.due = set()
        self.deaths = []
        self.told = {}  # (host, token): by when its turn must have come
        self.operators = [self.operator(f"op{i}") for i in range(self.random.randint(1, 6))]
        self.crash_something()

    def operator(self, name):
        numbers = [self.random.choice([1, 2, 2, 2, 3]) for _ in range(self.random.randint(1, 5))]
        hosts = sorted(self.hosts)
        ends = [tuple(self.random.sample(hosts, min(n, len(hosts)))) for n in numbers]
        one = Operator(name, ends)
        self.at(self.random.uniform(0, 20), self.next_test, one)
        return one

    def crash_something(self):
        if self.random.random() < 0.5:
            for _ in range(self.random.randint(1, 3)):
                host = self.random.choice(sorted(self.hosts))
                self.at(self.random.uniform(0, 200), self.host_dies, host)
        if self.random.random() < 0.5:
            for one in self.random.sample(self.operators, (len(self.operators) + 1) // 2):
                self.at(self.random.uniform(0, 200), self.operator_dies, one)

    def at(self, delay_s, what, *arguments):
        heapq.heappush(self.events, (self.now_s + delay_s, next(self.count), what, arguments))

    def send(self, what, *arguments):
        if self.random.random() >= self.loss:
            self.at(self.random.choice([0.01, 0.05, self.random.uniform(0, 2)]), what, *arguments)

    def run(self):
        """Run until nothing happens any more; return what went wrong."""
        while self.events:
            self.now_s, _, what, arguments = heapq.heappop(self.events)
            if self.now_s > HORIZON_S:
                self.faults.append("still at work at the horizon")
                break
            what(*arguments)
        self.judge()
        return self.faults

    # Operators ---------------------------------------------------------------------------------

    def next_test(self, one):
        if not one.alive or one.done + one.gave_up == len(one.tests):
            return
        one.taking = LeaseTaking(
            f"{one.name}#{next(self.count)}",
            one.tests[one.done + one.gave_up],
            TEST_S,
            HOLD_S,
            give_up_s=self.now_s + PATIENCE_S,
        )
        self.act(one, one.taking, one.taking.begin(self.now_s))

    def act(self, one, taking, actions):
        for action in actions:
            match action:
                case Ask():
                    self.send(self.asked, one, taking, action)
                case GiveBack(host, token):
                    self.send(self.given_back, host, token)
                case Ready(until_s):
                    self.begin_test(one, taking, until_s)
                case Ended(reason):
                    self.end_test(one, taking)
                    if reason:
                        one.gave_up += self.now_s >= taking.give_up_s
                    else:
                        one.done += 1
                    self.at(self.random.uniform(0, 5), self.next_test, one)
                case Waiting():
                    pass
        due = taking.name, taking.next_s
        if taking.next_s > self.now_s and due not in self.due:
            self.due.add(due)
            self.at(taking.next_s - self.now_s, self.tick, one, taking)

    def tick(self, one, taking):
        if one.alive and one.taking is taking:
            self.act(one, taking, taking.tick(self.now_s))

    def begin_test(self, one, taking, until_s):
        if until_s - self.now_s < TEST_S:
            self.faults.append(f"{one.name} began with {until_s - self.now_s} s left")
        self.running[one.name] = [(host, self.now_s) for host in taking.fingerprints]
        for host in taking.fingerprints:
            if not (self.up[host] and self.is_holder(host, taking)):
                self.lost_unseen(host, one)
        self.at(TEST_S, self.test_over, one, taking)

    def is_holder(self, host, taking):
        holder = self.hosts[host].holder(self.now_s)
        return holder is not None and holder.split("/")[0] == taking.name

    def lost_unseen(self, host, one):
        """Only a host that died has forgotten the lease: it has no test then, and refuses."""
        if host not in self.deaths:
            self.faults.append(f"{one.name} is ready, and {host} is not its own")
        self.running[one.name] = [each for each in self.running[one.name] if each[0] != host]

    def test_over(self, one, taking):
        if one.alive and one.taking is taking and one.name in self.running:
            for host, since_s in self.running[one.name]:
                if self.up[host] and not self.is_holder(host, taking):
                    self.faults.append(f"{one.name} tested {host} since {since_s} without a lease")
            self.act(one, taking, taking.finish(self.now_s))

    def end_test(self, one, taking):
        for host, since_s in self.running.pop(one.name, []):
            self.tested[host].append((since_s, self.now_s, taking.name))

    # Hosts -------------------------------------------------------------------------------------

    def asked(self, one, taking, action):
        host = action.fingerprint
        if not self.up[host]:
            return
        answer = self.hosts[host].ask(action.token, action.seconds, self.now_s)
        key = host, action.token
        if isinstance(answer, Wait):
            self.told.setdefault(key, self.now_s + answer.wait_s)
        elif self.told.pop(key, HORIZON_S) + answer_slack(self.loss) < self.now_s:
            self.faults.append(f"{key} waited longer than it was told")
        self.send(self.answered, one, taking, action, answer)

    def answered(self, one, taking, action, answer):
        if one.alive and one.taking is taking:
            actions = taking.answered(action.fingerprint, action.number, answer, self.now_s)
            self.act(one, taking, actions)

    def given_back(self, host, token):
        self.told.pop((host, token), None)
        if self.up[host]:
            self.hosts[host].give_back(token, self.now_s)

    # Deaths ------------------------------------------------------------------------------------

    def host_dies(self, host):
        if not self.up[host]:
            return
        self.deaths.append(host)
        self.up[host] = False
        self.told = {key: by_s for key, by_s in self.told.items() if key[0] != host}
        for name, ends in list(self.running.items()):
            for each in [each for each in ends if each[0] == host]:
                self.tested[host].append((each[1], self.now_s, name))
                ends.remove(each)
        self.at(self.random.uniform(0, 60), self.host_is_back, host)
        for one in self.operators:
            if self.random.random() < 0.7:  # else nobody says that the connection has ended
                self.send(self.connection_lost, one, one.taking, host)

    def host_is_back(self, host):
        self.hosts[host] = HostLease(LONGEST_S)
        self.up[host] = True

    def connection_lost(self, one, taking, host):
        if one.alive and taking is not None and one.taking is taking:
            self.act(one, taking, taking.lost(host, self.now_s))

    def operator_dies(self, one):
        one.alive = False
        if one.taking is None:
            return
        # Hosts go on with a test until they hear of it, or the lease ends.
        for host, since_s in self.running.pop(one.name, []):
            self.tested[host].append((since_s, self.now_s, one.name))
        if self.random.random() < 0.7:
            for host in one.taking.fingerprints:
                for attempt in range(1, one.taking._attempt + 1):
                    self.send(self.given_back, host, f"{one.taking.name}/{attempt}")

    # The judge ---------------------------------------------------------------------------------

    def judge(self):
        for host, tests in self.tested.items():
            for one, other in itertools.pairwise(sorted(tests)):
                if other[0] < one[1]:
                    self.faults.append(f"{host} is in two tests: {one} and {other}")
        for one in self.operators:
            if one.alive and (one.done != len(one.tests) or one.gave_up):
                self.faults.append(f"{one.name} has done {one.done} of {len(one.tests)} tests")
        for host, lease in self.hosts.items():
            if lease.holder(self.now_s + LONGEST_S) is not None:
                self.faults.append(f"{host} is held for ever")


def answer_slack(loss):
    """Whoever asks every two seconds hears late by a question's way; with losses, by several."""
    return 8.0 if loss == 0 else HORIZON_S


if __name__ == "__main__":
    for seed in range(int(sys.argv[1])):
        if faults := World(seed).run():
            sys.stdout.write(f"seed {seed}: {faults}\n")
