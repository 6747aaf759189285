"""Nothing of the inside is reached through a URL, however it is written and whatever its name leads to."""

from __future__ import annotations

import ipaddress

import pytest

from app.infra.outbound.addresses import AddressRefused, Rules, is_public

PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "64:ff9b::808:808", "::ffff:8.8.8.8"]
INSIDE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.1.2.3",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::808:808",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", INSIDE)
def test_internal_addresses_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    rules = Rules()
    with pytest.raises(AddressRefused, match="is a private address"):
        rules.check(rules.target("https://hooks.example/"), [address])


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_accepted(address: str) -> None:
    rules = Rules()
    assert rules.check(rules.target("https://hooks.example/"), [address]) == [address]


@pytest.mark.parametrize("inside", ["127.0.0.1", "::1", "10.0.0.1"])
def test_one_internal_address_among_others_refuses_the_host(inside: str) -> None:
    rules = Rules()
    for answer in ([inside, *PUBLIC], [*PUBLIC, inside]):
        with pytest.raises(AddressRefused):
            rules.check(rules.target("https://hooks.example/"), answer)


def test_host_without_an_address_is_refused() -> None:
    rules = Rules()
    with pytest.raises(AddressRefused, match="could not be looked up"):
        rules.check(rules.target("https://hooks.example/"), [])


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example",
        "//hooks.example/",
        "https:///path",
        "https://:443/",
        "http://hooks.example/",
        "ftp://hooks.example/",
        "file:///etc/passwd",
        "gopher://hooks.example/",
        "unix:///run/docker.sock",
        "https://user@hooks.example/",
        "https://user:secret@hooks.example/",
        "https://@hooks.example/",
        "https://hooks.example#@inside/",
        "https://hooks.example/#part",
        "https://hooks.example\\@inside/",
        "https://hooks.example\\.inside/",
        "https://hooks.example /",
        "https://hooks.example/a b",
        "https://hooks.example/\r\nHost: inside",
        "https://hooks.example/\n",
        "https://hooks.example/\t",
        "https://hooks.exam\0ple/",
        "https://hooks.example:port/",
        "https://hooks.example:99999/",
        "https://hooks.example:80:80/",
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://[hooks.example]/",
        "https://127。0。0。1/",
        "https://１２７.0.0.1/",
        "https://hööks.example/",
        "https://%31%32%37.0.0.1/",
        "https://hooks.example%00.inside/",
        "https://-hooks.example/",
        "https://.example/",
        "https://hooks.example/" + "a" * 2_000,
    ],
)
def test_invalid_url_is_refused_before_its_host_is_resolved(url: str) -> None:
    with pytest.raises(AddressRefused):
        Rules().target(url)


def test_target_has_the_parts_of_its_url() -> None:
    target = Rules(http=True).target("http://Hooks.Example.:8080/a/b?c=%20d")
    assert (target.scheme, target.host, target.port, target.path) == (
        "http",
        "hooks.example",
        8080,
        "/a/b?c=%20d",
    )
    assert Rules().target("https://hooks.example").path == "/"
    assert Rules().target("https://hooks.example?a=b").path == "/?a=b"
    assert Rules().target("https://[2606:2800:220:1::1]/").host == "2606:2800:220:1::1"


@pytest.mark.parametrize("port", [0, 22, 25, 5432, 6379, 9200, 65535])
def test_ports_of_other_services_are_refused(port: int) -> None:
    rules = Rules()
    with pytest.raises(AddressRefused, match=f"port {port}"):
        rules.check(rules.target(f"https://hooks.example:{port}/"), PUBLIC)


def test_allowed_networks_and_hosts_are_exceptions() -> None:
    rules = Rules.of(("10.20.0.0/16", "fd00:1::/32", "Hooks.Internal."), http=False)
    assert rules.check(rules.target("https://any.example:5000/"), ["10.20.3.4", "fd00:1::5"])
    assert rules.check(rules.target("https://hooks.internal:5000/"), ["127.0.0.1"])
    for url, address in (
        ("https://any.example/", "10.21.3.4"),
        ("https://other.internal/", "127.0.0.1"),
        ("https://x.hooks.internal/", "127.0.0.1"),
    ):
        with pytest.raises(AddressRefused):
            rules.check(rules.target(url), [address])
    with pytest.raises(AddressRefused, match="expected https"):
        rules.target("http://hooks.internal/")
