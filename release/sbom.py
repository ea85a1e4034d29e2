"""The bill of materials of a release: every package of the run-time lock, in CycloneDX."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.licences import licence_of
from release.lock import ROOT, RUN_TIME, Pin, pins

AT_DEVELOPMENT = {"bench", "dev"}
"""Extras that no release installs."""


def bill_of_materials(lock: Path = RUN_TIME, *, made_at: datetime) -> str:
    """Return a lock file as CycloneDX 1.6 in JSON: version, purl, licence and the SHA-256 of each file of a package.

    The same lock and moment give the same text. Raises `UnknownLicence` where a package's licence can't be told.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    root = component(name, version, licence=project["license"], kind=ComponentType.APPLICATION)
    found = {each: component_of(each) for each in pins(lock)}
    bom = Bom(components=found.values())
    bom.metadata.component = root
    bom.metadata.timestamp = made_at.astimezone(UTC)
    bom.serial_number = uuid5(NAMESPACE_URL, f"{name} {version} {sha256(lock.read_bytes()).hexdigest()}")
    by_name: dict[str, list[Component]] = defaultdict(list)
    for each, made in found.items():
        by_name[each.name].append(made)
    for each, wanted in dependencies(project, by_name).items():
        for made in [root] if each == name else by_name[each]:
            bom.register_dependency(made, [target for other in wanted for target in by_name[other]])
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def component_of(pin: Pin) -> Component:
    """Return a pin as a component; any of the hashes is that of one file of the release."""
    made = component(pin.name, pin.version, licence=licence_of(pin.name), kind=ComponentType.LIBRARY)
    made.hashes = [HashType(alg=HashAlgorithm.SHA_256, content=each) for each in pin.sha256]
    if pin.marker:
        made.properties.add(Property(name="python:marker", value=pin.marker))
    return made


def component(name: str, version: str, *, licence: str, kind: ComponentType) -> Component:
    """Return a package of the index as a component."""
    purl = PackageURL("pypi", name=name, version=version)
    licences = [LicenseFactory().make_from_string(licence)]
    return Component(name=name, version=version, type=kind, purl=purl, bom_ref=str(purl), licenses=licences)


def dependencies(project: Mapping[str, object], locked: Iterable[str]) -> dict[str, set[str]]:
    """Return what each package of a lock asks for of it, by name; extras count where somebody asks for them."""
    names = set(locked)
    asked = [Requirement(each) for each in direct(project)]
    edges: dict[str, set[str]] = {str(project["name"]): {canonicalize_name(each.name) for each in asked} & names}
    waiting = [(canonicalize_name(each.name), frozenset({"", *each.extras})) for each in asked]
    seen = set(waiting)
    for name, extras in waiting:
        wanted = [each for each in asked_by(name) if applies(each, extras)]
        edges.setdefault(name, set()).update({canonicalize_name(each.name) for each in wanted} & names)
        found = {(canonicalize_name(each.name), frozenset({"", *each.extras})) for each in wanted}
        waiting.extend(sorted(found - seen, key=str))
        seen |= found
    return {name: edges.get(name, set()) for name in (str(project["name"]), *names)}


def direct(project: Mapping[str, object]) -> list[str]:
    """Return the requirements of the project itself, those of development left out."""
    extras: Mapping[str, list[str]] = project["optional-dependencies"]  # type: ignore[assignment]
    core: list[str] = project["dependencies"]  # type: ignore[assignment]
    return [*core, *(each for extra, listed in extras.items() if extra not in AT_DEVELOPMENT for each in listed)]


def asked_by(name: str) -> list[Requirement]:
    """Return the requirements of an installed package; none of one that this platform does not install."""
    try:
        return [Requirement(each) for each in requires(name) or ()]
    except PackageNotFoundError:
        return []


def applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    """Tell whether a requirement holds here with some of these extras of the package that has it."""
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)
