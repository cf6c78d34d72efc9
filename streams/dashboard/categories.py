"""The categories the page lists, in the order it lists them."""

from __future__ import annotations

import functools

from models.queries import load_queries
from streams.dashboard.page_model import Category, kinds_beside

__all__ = ["bundled_categories"]

# Most urgent first; a category not named here comes after these.
ORDER = (
    "search_rescue", "medical_help", "evacuation_transport", "missing_people", "water", "food", "shelter", "medicine",
    "baby_hygiene", "clothing_blankets", "electricity_fuel", "communications", "safety_looting", "heavy_equipment",
    "volunteers_labour", "psychosocial", "money", "animals", "evacuation", "danger", "sub_event", "damage",
)  # fmt: skip


@functools.cache  # they never change: 0.1 s of reading YAML, once
def bundled_categories() -> tuple[Category, ...]:
    """The categories of the bundled queries, most urgent first. Blocking: reads files."""
    found = {q.category: Category(q.category, q.label, q.iasc, kinds_beside(q.id, q.kind)) for q in load_queries()}
    return tuple(
        sorted(found.values(), key=lambda c: (ORDER.index(c.category) if c.category in ORDER else 99, c.label))
    )
