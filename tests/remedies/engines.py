"""Remedies about runs in simulators, files of plans, and scenarios of a problem."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
from instances.ns3_networks import line_network
from instances.planned_anew import triangle
from instances.small_scenarios import line_of
from pyarrow import parquet
from remedies.methods import Deciding
from remedies.trying import Example, call, in_folder, in_new_folder

import datacollect as dc
from datacollect.control.decisions import WakeMe
from datacollect.errors import SimulationError
from datacollect.files.registry import Registry
from datacollect.numbers.containers import order_of
from datacollect.scenario.fits import require_room
from datacollect.scenario.setting import build
from datacollect.simulation.fluid.engine import simulate_problem
from datacollect.simulation.ns3.engine import simulate_ns3
from datacollect.simulation.ns3.results import Result, run_of
from datacollect.simulation.network import BackgroundFlow
EXAMPLES: list[Example] = []
