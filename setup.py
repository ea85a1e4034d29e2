"""What pyproject.toml can't say: the folder `sql` is the package `nous_sql`, so that no common name is taken."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["nous_online*", "nous_pipelines*"]), "nous_sql"],
    package_dir={"nous_sql": "sql"},
)
