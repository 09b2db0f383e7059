#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Validates the lines of FOLDER/N.json by the JSON Schema FOLDER/N.schema. Prints N and the number of lines, or what is
wrong.

   tests/tools/schemas.py FOLDER
"""
import json
import pathlib
import sys

import jsonschema


def problem(schema_path, lines_path):
    """Returns the first thing that is wrong, and the number of lines."""
    schema = json.loads(schema_path.read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validator, n = jsonschema.Draft7Validator(schema), 0
    for text in lines_path.read_text().splitlines():
        n += 1
        line = json.loads(text)
        for error in validator.iter_errors(line):
            return f'{text}\n' + '\n'.join(one.message[:300] for one in error.context), n
    return None, n


for path in sorted(pathlib.Path(sys.argv[1]).glob('*.schema')):
    wrong, count = problem(path, path.with_suffix('.json'))
    print(path.stem, wrong or count)
