"""The page of measurements: charts, routers, tests that run."""
