"""Addresses of what customers do with what is their own."""

from __future__ import annotations

from django.urls import path

from memberintel.privacy import data_pages

urlpatterns = [
    path("privacy/data/", data_pages.your_data, name="your-data"),
    path("privacy/data/copy/", data_pages.take_copy, name="take-copy"),
    path("privacy/data/erase/", data_pages.erase_page, name="erase"),
]
