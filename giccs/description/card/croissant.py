"""Machine-readable metadata of the data set: Croissant 1.0 in JSON-LD.

https://docs.mlcommons.org/croissant/docs/croissant-spec.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from giccs.description.card.stated import Stated
from giccs.description.card.tables import PublishedTable

if TYPE_CHECKING:
    import polars as pl

Node = dict[str, Any]

TERMS = (
    "citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty",
    "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path",
    "recordSet", "references", "regex", "repeated", "replace", "samplingRate", "separator", "source",
    "subField", "transform",
)  # fmt: skip
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in TERMS},
}
STATED = {
    "license_link": "license",
    "language": "inLanguage",
    "citation": "citeAs",
    "homepage": "url",
    "version": "version",
    "published": "datePublished",
    "source": "rai:dataCollection",
    "annotators": "rai:annotatorDemographics",
    "intended_use": "rai:dataUseCases",
    "limits": "rai:dataLimitations",
    "personal_data": "rai:personalSensitiveInformation",
}
"""Key of card.toml -> name in Croissant."""


def croissant(
    stated: Stated,
    title: str,
    description: str,
    keywords: Sequence[str],
    tables: Sequence[PublishedTable],
) -> str:
    """Return the metadata of the tables: their files with SHA-256, and one record set per table.

    Missing information is omitted.
    """
    stated_terms = {STATED[key]: value for key, value in stated.answers.items() if key in STATED}
    if stated.text("license") and "license" not in stated_terms:
        stated_terms["license"] = stated.text("license")
    if authors := stated.texts("authors"):
        stated_terms["creator"] = [{"@type": "sc:Person", "name": name} for name in authors]
    document = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": title,
        "description": description,
        "keywords": list(keywords),
        **stated_terms,
        "distribution": [_file(table) for table in tables],
        "recordSet": [_record_set(table) for table in tables],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _file(table: PublishedTable) -> Node:
    return {
        "@type": "cr:FileObject",
        "@id": f"{table.config}-file",
        "name": f"{table.config}-file",
        "description": table.about,
        "contentUrl": table.path,
        "contentSize": f"{len(table.content)} B",
        "encodingFormat": "application/x-parquet",
        "sha256": table.sha256,
    }


def _record_set(table: PublishedTable) -> Node:
    key = {"key": {"@id": f"{table.config}/{table.key}"}} if table.key else {}
    return {
        "@type": "cr:RecordSet",
        "@id": table.config,
        "name": table.config,
        "description": f"{table.about}: {table.frame.height} records",
        **key,
        "field": [_field(table, name, dtype) for name, dtype in table.frame.schema.items()],
    }


def _field(table: PublishedTable, name: str, dtype: pl.DataType) -> Node:
    import polars as pl

    source: Node = {"fileObject": {"@id": f"{table.config}-file"}, "extract": {"column": name}}
    identity = f"{table.config}/{name}"
    if isinstance(inner := getattr(dtype, "inner", None), pl.Struct):
        field: Node = {"repeated": True, "subField": [*_inside(table, identity, source, inner)]}
    else:
        field = {"dataType": _type(dtype)}
    return {
        "@type": "cr:Field",
        "@id": identity,
        "name": name,
        "description": table.about_column(name),
        **field,
        "source": source,
    }


def _inside(table: PublishedTable, parent: str, source: Node, struct: pl.Struct) -> Iterator[Node]:
    """Yield the fields of the structs in a list."""
    import polars as pl

    for name, dtype in pl.Schema(struct.to_schema()).items():
        yield {
            "@type": "cr:Field",
            "@id": f"{parent}/{name}",
            "name": name,
            "description": table.about_column(name),
            "dataType": _type(dtype),
            "source": {**source, "transform": {"jsonPath": name}},
        }


def _type(dtype: pl.DataType) -> str:
    if dtype.is_integer():
        return "sc:Integer"
    return "sc:Float" if dtype.is_float() else "sc:Text"
