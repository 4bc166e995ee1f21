"""Public names and where they are, for type checkers: `datacollect.__getattr__` imports them."""

from datacollect.bistro.auditor.audit_event import audit_event as audit_event
from datacollect.bistro.person.upload import upload as upload
from datacollect.bistro.person.verify_receipt import verify_receipt as verify_receipt
from datacollect.errors import (
    DatacollectError as DatacollectError,
    DatacollectWarning as DatacollectWarning,
    InfeasibleError as InfeasibleError,
    NotWrittenError as NotWrittenError,
    ProblemError as ProblemError,
    ScheduleError as ScheduleError,
    SimulationError as SimulationError,
    SolverError as SolverError,
    SolverUnavailableError as SolverUnavailableError,
    TimeLimitError as TimeLimitError,
    TransferError as TransferError,
)
from datacollect.explanation.advise import advise as advise
from datacollect.explanation.advisory import Advisory as Advisory
from datacollect.explanation.explain import explain as explain
from datacollect.explanation.findings import Explanation as Explanation
from datacollect.flow.optimum import lower_bound as lower_bound
from datacollect.machine.profile import HostProfile as HostProfile, host_profile as host_profile
from datacollect.measurement.estimates import estimate as estimate
from datacollect.measurement.iperf3 import samples_from_iperf3 as samples_from_iperf3
from datacollect.measurement.perturbed import perturb as perturb, perturb_random as perturb_random
from datacollect.measurement.samples import read_samples as read_samples
from datacollect.measuring.cycle.measure_cycle import measure_cycle as measure_cycle
from datacollect.methods.best_path import best_path as best_path
from datacollect.methods.comparison import Comparison as Comparison, compare as compare
from datacollect.methods.coordinated.coordinated import coordinated as coordinated
from datacollect.methods.direct import direct as direct
from datacollect.methods.money_front import front as front
from datacollect.methods.replanning.replan import replan as replan
from datacollect.methods.slotted.graph import time_expanded_graph as time_expanded_graph
from datacollect.pictures.network_map import plot_map as plot_map
from datacollect.pictures.page import plot_page as plot_page
from datacollect.pictures.plot import plot_schedule as plot_schedule, save_plot as save_plot
from datacollect.problem.hosts import (
    Held as Held,
    Host as Host,
    Link as Link,
    Parcel as Parcel,
    SharedBottleneck as SharedBottleneck,
)
from datacollect.problem.problem import Problem as Problem
from datacollect.scenario.carry_out import simulate as simulate
from datacollect.scenario.scenario import Scenario as Scenario
from datacollect.schedule.data.new_links import NewLinks as NewLinks
from datacollect.schedule.data.transfers import (
    Bottleneck as Bottleneck,
    Route as Route,
    Transfers as Transfers,
)
from datacollect.schedule.progress import (
    Progress as Progress,
    remaining_problem as remaining_problem,
)
from datacollect.schedule.schedule import Schedule as Schedule
from datacollect.study.experiment import Experiment as Experiment
from datacollect.study.report.report import Report as Report, report as report
from datacollect.study.report.verdicts import Verdicts as Verdicts
from datacollect.study.sweep import sweep as sweep
from datacollect.transfer.pull.answer import Pulled as Pulled
from datacollect.transfer.pull.run import pull as pull
from datacollect.transfer.tunnel.tunnel import Tunnel as Tunnel, tunnel as tunnel
from datacollect.uncertainty.certainty import Certainty as Certainty, certainty as certainty

__version__: str
