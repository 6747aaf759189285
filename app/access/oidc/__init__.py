"""Tokens of OpenID Connect issuers: JSON Web Tokens that are accepted as bearer credentials beside API keys.

- issuers.py: the issuers of a deployment (HEADWATER_OIDC_ISSUERS)
- token.py: the parts of a token, its checks, and what its claims give
- key_set.py: the public keys that an issuer publishes
- key_cache.py: the key sets of a process, refreshed beside requests
- download.py: JSON from an issuer, within a bounded time and size
- code_flow.py: the sign-in of a person at an issuer
- verifier.py: from the text of a token to its claims

PyJWT checks signatures and times. A token chooses nothing but the entry of its issuer: algorithms, audience and the
place of the keys are the operator's settings.
"""
