"""Kinds of contract for import-linter: what of a room is imported within the room only."""

from __future__ import annotations

from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.application import contract_utils
from importlinter.domain import helpers


class OwnParts(Contract):
    """`parts`: expressions of modules, such as `app.features.*.tables`. Each belongs to the package above it."""

    type_name = "own_parts"

    parts = fields.SetField(subfield=fields.ModuleExpressionField())
    ignore_imports = fields.SetField(subfield=fields.ImportExpressionField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """The imports of parts from outside of their rooms."""
        contract: Any = self
        contract_utils.remove_ignored_imports_and_report(
            graph=graph,
            ignore_imports=contract.ignore_imports,
            unmatched_alerting=contract_utils.AlertLevel.ERROR,
        )
        parts = helpers.module_expressions_to_modules(graph, contract.parts, as_packages=False)
        links = {
            (importer, module)
            for part in sorted(each.name for each in parts)
            for module in {part, *graph.find_descendants(part)}
            for importer in graph.find_modules_that_directly_import(module)
            if not importer.startswith(part.rpartition(".")[0] + ".")
        }
        return ContractCheck(kept=not links, metadata={"links": sorted(links)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Prints the imports."""
        for importer, module in check.metadata["links"]:
            output.print_error(f"- {importer} -> {module} is an import of another room's part", bold=False)
            output.new_line()


class Surface(Contract):
    """Each of the `rooms` is imported from outside by the modules of `surface` only."""

    type_name = "surface"

    rooms = fields.SetField(subfield=fields.ModuleExpressionField())
    surface = fields.SetField(subfield=fields.ModuleExpressionField())
    ignore_imports = fields.SetField(subfield=fields.ImportExpressionField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """The imports of other modules from outside of their rooms."""
        contract: Any = self
        contract_utils.remove_ignored_imports_and_report(
            graph=graph,
            ignore_imports=contract.ignore_imports,
            unmatched_alerting=contract_utils.AlertLevel.ERROR,
        )
        surface = {
            module.name
            for module in helpers.module_expressions_to_modules(graph, contract.surface, as_packages=False)
        }
        rooms = helpers.module_expressions_to_modules(graph, contract.rooms, as_packages=False)
        links = {
            (importer, module)
            for room in sorted(each.name for each in rooms)
            for module in graph.find_descendants(room) - surface
            for importer in graph.find_modules_that_directly_import(module)
            if not importer.startswith(room + ".")
        }
        return ContractCheck(kept=not links, metadata={"links": sorted(links)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Prints the imports."""
        for importer, module in check.metadata["links"]:
            output.print_error(f"- {importer} -> {module} is no import of a room's surface", bold=False)
            output.new_line()
