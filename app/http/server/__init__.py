"""The HTTP server's side of a connection: bounds that hold before any credential is read, and the drain before a stop.

connection_limits   how large heads may be, how long a peer may wait, how many connections there may be
connections         which connections are admitted, by address and in total
turns               when requests begin that were sent before the response of an earlier one
protocol            uvicorn's protocol: ends connections that are too slow, and refuses bad HTTP by problem documents
server              uvicorn's server: has connections checked once a second, and drains before a stop
"""
