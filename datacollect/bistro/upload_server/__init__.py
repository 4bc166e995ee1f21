"""An upload server, or bistro: takes sealed uploads over an agent, and signs for them."""
