// The page that describes the API, with forms to try it as whoever is signed in.
"use strict";

window.addEventListener("load", () => {
  const { description, csrf } = document.body.dataset;
  window.SwaggerUIBundle({
    url: description,
    dom_id: "#api",
    presets: [window.SwaggerUIBundle.presets.apis],
    layout: "BaseLayout",
    deepLinking: true,
    validatorUrl: null,
    requestInterceptor(request) {
      const own = new URL(request.url, document.baseURI).origin === location.origin;
      if (own && request.method && request.method !== "GET") request.headers["X-CSRFToken"] = csrf;
      return request;
    },
  });
});
