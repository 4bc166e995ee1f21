"""Request for a tunnel to an agent, over TLS: one request, one answer, then bytes.

The client greets by TLS 1.3 and offers `TUNNEL_PROTOCOL` (ALPN) alone. Then it sends the request
that relays get, too, `datacollect.net.connect`: ``CONNECT`` to the name of a service, with a tunnel
ticket. An answer of 200 is followed by the bytes of the service; others say why not.
"""

TUNNEL_PROTOCOL = "datacollect-tunnel/1"
