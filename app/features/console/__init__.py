"""The console: pages for people, rendered on the server from the responses of the API.

A page belongs to a session, which a person begins with an API key, a link or a token of an issuer. It sends requests to
the service with the credential of the session, so it shows what the API shows to that credential.

pages       what each page reads, and what its forms do
templates   how pages look
static      the style sheet and the script
"""
