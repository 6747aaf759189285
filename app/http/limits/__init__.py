"""How much requests may take at a time, and how tenants share it.

request_limits    the rates of tenants and keys, and requests that wait
threads           the threads in which handlers run synchronous use cases
usage_counter     the requests and bytes of each key
"""
