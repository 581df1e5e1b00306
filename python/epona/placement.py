"""Placement: which provider runs each node of a model, and why not another."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from epona import _epona


class Placement(Sequence):
    """A sequence of one dict for each node of the model as it was loaded, subgraphs included.

    Keys of a node: name, op_type, domain, graph, provider ("" when nobody runs it), runs_as (the operator that computes
    it, when it is another), fused_by (names of passes), vanished (how, when nothing computes it any more), flops, inputs,
    outputs, declined (a list of {provider, reason, text}, for every provider that was asked first).
    print() shows it as a table.
    """

    def __init__(self, session: _epona.Session):
        self._json = session.placement_json()
        self._html = session.placement_html
        self._table = session.placement_table
        self._report = json.loads(self._json)

    def __len__(self) -> int:
        return len(self._report["nodes"])

    def __getitem__(self, index: Any) -> Any:
        return self._report["nodes"][index]

    def __iter__(self) -> Iterator[dict]:
        return iter(self._report["nodes"])

    def __str__(self) -> str:
        return self._table(200)

    def __repr__(self) -> str:
        shares = ", ".join(f"{name}: {share['nodes']} nodes" for name, share in self.providers.items())
        return f"<Placement of {len(self)} nodes: {shares}>"

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """All nodes."""
        return self._report["nodes"]

    @property
    def providers(self) -> dict[str, dict[str, float]]:
        """What each provider runs: nodes, node_share, flops, flop_share (estimates from the declared dims)."""
        return {row["name"]: {key: row[key] for key in row if key != "name"} for row in self._report["providers"]}

    @property
    def inactive(self) -> list[dict[str, str]]:
        """Providers that were asked for and are not active: provider, stage, cause, fix."""
        return self._report["inactive"]

    @property
    def copies(self) -> list[dict[str, Any]]:
        """Copies between memories: graph, value, from, to, bytes (-1: known when it runs), once (a constant)."""
        return self._report["copies"]

    @property
    def inserted(self) -> list[dict[str, str]]:
        """Nodes that passes put in: op_type, domain, graph, provider, by."""
        return self._report["inserted"]

    @property
    def phases(self) -> dict[str, float]:
        """Phases of the session's creation in milliseconds."""
        return {row["name"]: row["ms"] for row in self._report["phases"]}

    def to_json(self) -> str:
        """All of it as JSON text."""
        return self._json

    def to_html(self, path: str | os.PathLike | None = None) -> str:
        """One self-contained page: the graph coloured by provider, to be filtered, reasons on hover. Written to `path` if
        given."""
        text = self._html()
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return text
