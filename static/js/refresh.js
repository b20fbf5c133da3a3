// Looks again at a page that waits for something, for as long as it is being looked at.
"use strict";

setTimeout(function again() {
  if (document.visibilityState === "visible") location.reload();
  else setTimeout(again, 1000);
}, 1500);
