"""Take the README's picture of a running dashboard, such as that of `crisis demo`:

python -m tests.dashboard.picture http://127.0.0.1:8080 deploy/dashboard.png [--scheme light] [--size 390x844]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.services.chromium import FLAGS, find_chromium


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("out", type=Path)
    parser.add_argument("--scheme", choices=["dark", "light"], default="dark")
    parser.add_argument("--size", default="1440x900")
    asked = parser.parse_args()
    width, height = map(int, asked.size.split("x"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme=asked.scheme, reduced_motion="reduce"
        )
        page.goto(asked.url)
        page.wait_for_selector("#link[data-state=live]")
        page.wait_for_timeout(2500)  # a few ticks, so that the rate is one
        page.screenshot(path=asked.out)
        browser.close()


if __name__ == "__main__":
    main()
