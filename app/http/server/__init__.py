"""The HTTP server's side of a connection: bounds that hold before any credential is read, and the drain before a stop.

connection_limits   how large heads may be, how long a peer may wait, how many connections there may be
connections         which connections are admitted, by address and in total
protocol            uvicorn's protocol with these bounds, and bad HTTP refused as problem documents
server              uvicorn's server, which ends slow connections and drains
"""
