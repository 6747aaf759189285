"""What the service connects to for a user, such as the URL of a webhook: which addresses, and within which limits.

`Rules.target` parses a URL, and `Rules.check` checks every address of its host against the registries of
special-purpose networks. The public internet is allowed, and the networks and hosts that the operator adds. The caller
resolves the host once and connects to an address that was checked; see `connector`.

`limited_process` has a process of its own talk to a server: with limits of memory and time, and a clean environment.
"""
