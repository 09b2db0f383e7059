#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""site.py FOLDER: prints the links of a site that lead to no file or anchor, and what its pages load from elsewhere. Fails
if there are some."""
import html.parser
import os
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.update(attrs[name] for name in ("id", "name") if attrs.get(name))
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        elif tag in ("script", "img", "iframe") and attrs.get("src"):
            self.loads.append(attrs["src"])
        elif tag == "link" and attrs.get("href") and attrs.get("rel") != "canonical":
            self.loads.append(attrs["href"])


def main(top):
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names if name.endswith(".html")]
    pages = {path: Page(path) for path in paths if os.path.basename(path) != "404.html"}
    wrong = []
    for path, page in pages.items():
        for target in page.links + page.loads:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loads:
                    wrong.append("%s loads %s" % (path, target))
                continue
            to = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path))) if parts.path else path
            if to in (top, path) and not parts.fragment:
                continue
            if not os.path.exists(to) or parts.fragment and to in pages and urllib.parse.unquote(parts.fragment) not in pages[to].ids:
                wrong.append("%s: %s" % (path, target))
    print("%d pages" % len(pages))
    print("\n".join(wrong))
    return 1 if wrong or len(pages) < 20 else 0


sys.exit(main(os.path.normpath(sys.argv[1])))
