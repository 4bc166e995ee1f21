"""Tunnels: any program's TCP to a service beside an agent, directly or through relays."""
