// Shows feeds while they are sent: a row for each.
"use strict";
(() => {
  const {byId, table, follow} = live;

  function show(news) {
    table(byId("feeds"), "Feeds", news.columns, news.rows);
    return null;
  }
  follow(show, "Connected: what is shown is of this second.");
})();
