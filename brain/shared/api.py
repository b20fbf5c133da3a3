"""The API of shared knowledge."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from brain.shared import queries
from memberintel.accounts.problems import NotFound
from memberintel.accounts.rest import Endpoint, described

READ = ("read", "brain")


class ArticleOut(serializers.Serializer[Any]):
    """A published article."""

    id = serializers.UUIDField()
    slug = serializers.CharField()
    title = serializers.CharField()
    topic = serializers.CharField()
    text = serializers.CharField()
    published_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Article"


class ArticlesOut(serializers.Serializer[Any]):
    """All articles, by topic and title."""

    items = ArticleOut(many=True)

    class Meta:
        ref_name = "Articles"


class Articles(Endpoint):
    """What is published."""

    scopes = {"GET": READ}

    @described("list_articles", tag="knowledge", gives={200: ArticlesOut})
    def get(self, request: Request) -> Response:
        """All articles of shared knowledge, by topic and title."""
        return Response(ArticlesOut({"items": queries.articles()}).data)


class OneArticle(Endpoint):
    """One article."""

    scopes = {"GET": READ}

    @described("get_article", tag="knowledge", by_id=True, gives={200: ArticleOut})
    def get(self, request: Request, article: UUID) -> Response:
        """One article."""
        found = queries.article(id=article)
        if found is None:
            raise NotFound
        return Response(ArticleOut(found).data)
