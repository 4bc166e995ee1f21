"""The fluid optimum: when the last byte can arrive, why not earlier, by which routes."""
