"""What rendered files serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.objects.ports import ObjectTree
from app.features.rendered_files.compose import rendered_files
from app.features.rendered_files.problems import PROBLEMS
from app.features.rendered_files.service.tree import RenderedTree


def _trees(process: ApiProcess) -> Mapping[str, ObjectTree]:
    tree = RenderedTree(files=process.once(rendered_files))
    return {tree.segment: tree}


API: Final = FeatureApi(name="rendered_files", routes=(), object_trees=_trees, problems=(PROBLEMS,))
