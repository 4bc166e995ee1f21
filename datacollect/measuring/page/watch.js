// Draws measurements: those that the page holds, or, live, those that its host tells.
"use strict";
(() => {
  const {byId, clock, element} = live;
  const main = document.querySelector("main"), config = {responsive: true, displaylogo: false};
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // What stands out too little from a page's ground, and what is drawn instead.
  const INSTEAD = {dark: {"#0072B2": "#4AA3DF", "#332288": "#9D8DF1"}, light: {"#F0E442": "#B0A000"}};
  const links = new Map(), charts = new Map();
  let hosts = {};

  function div(id) {
    if (byId(id)) return byId(id);
    const made = element("div");
    made.className = "chart";
    made.id = id;
    main.append(made);
    return made;
  }

  const colour = name => INSTEAD[dark.matches ? "dark" : "light"][name] || name;

  function coloured(data) {
    return JSON.parse(JSON.stringify(data), (_, value) => typeof value === "string" ? colour(value) : value);
  }

  function look() {
    const style = getComputedStyle(document.body), line = dark.matches ? "#3a3f47" : "#dde1e6";
    const axis = {gridcolor: line, zerolinecolor: line, linecolor: line};
    return {layout: {font: {color: style.color}, paper_bgcolor: "#0000", plot_bgcolor: "#0000",
      xaxis: axis, yaxis: axis, hoverlabel: {font: {color: "#222"}, bgcolor: "#fff"}}};
  }

  function draw(into, title, data, layout, label = title) {
    // Narrow screens have room for few words in a line.
    const words = innerWidth < 640 ? title.replace(": ", ":<br>") : title;
    into.setAttribute("role", "figure");
    into.setAttribute("aria-label", label);
    return Plotly.react(into, coloured(data), {
      title: {text: words, font: {size: 15}}, legend: {orientation: "h", y: -0.25},
      margin: {l: 55, r: 15, t: 70, b: 55}, template: look(), ...layout}, config);
  }

  const over = (unit, more) => ({yaxis: {title: {text: unit}, rangemode: "tozero"}, showlegend: true, ...more});

  function drawLink() {
    const link = links.get(byId("link").value);
    if (!link) return;
    draw(div("rates"), `${link.title}: rates by kind of test`, link.rates, over("Mbit/s"), `${link.name}: rates`);
    draw(div("rtt"), `${link.title}: round trips`, link.rtt, over("ms"), `${link.name}: round trips`);
  }

  function drawChart(id, chart) {
    const into = div(id), by = chart.colours && chosen(into, id, chart);
    if (by) chart.data[1].marker = {...chart.data[1].marker, ...by.marker};
    draw(into, chart.title, chart.data, chart.layout);
  }

  // How routers are coloured: radio buttons before the chart, and a legend.
  function chosen(into, id, chart) {
    let field = byId(`${id}-by`);
    if (!field) {
      field = element("fieldset");
      field.id = `${id}-by`;
      field.append(element("legend", "Colour of routers"));
      Object.keys(chart.colours).forEach((name, i) => {
        const label = element("label"), input = element("input");
        Object.assign(input, {type: "radio", name: field.id, value: name, checked: i === 0});
        input.addEventListener("change", () => drawChart(id, charts.get(id)));
        label.append(input, ` ${name}`);
        field.append(label);
      });
      field.append(element("ul"));
      into.before(field);
    }
    const by = chart.colours[field.querySelector(":checked").value];
    field.querySelector("ul").replaceChildren(...(by.legend || []).map(([name, of]) => {
      const item = element("li"), sample = element("span");
      sample.className = "sample";
      sample.style.background = colour(of);
      item.append(sample, name);
      return item;
    }));
    return by;
  }

  function options(select, names) {
    const known = [...select.options].map(each => each.value);
    if (JSON.stringify(known) === JSON.stringify(names)) return;
    const before = select.value;
    select.replaceChildren(...names.map(name => new Option(name, name)));
    select.value = names.includes(before) ? before : names[0];
  }

  function drawHost() {
    const host = hosts[byId("host").value];
    byId("why").textContent = host ? host.why : "";
    draw(byId("counters"), "Interfaces: the last 120 s", host ? host.lines : [],
      over("Mbit/s", {height: 260, margin: {l: 55, r: 15, t: 40, b: 40},
        xaxis: {range: [-120, 0]}}));
  }

  function show(news) {
    if ("facts" in news) byId("facts").textContent = news.facts;
    for (const link of news.links || []) links.set(link.name, link);
    if (news.links) {
      options(byId("link"), [...links.keys()].sort());
      if (news.links.some(link => link.name === byId("link").value)) drawLink();
    }
    (news.charts || []).forEach((chart, i) => {
      charts.set(`chart-${i}`, chart);
      drawChart(`chart-${i}`, chart);
    });
    if (news.tests) {
      const said = news.tests.map(test => `${test.tool} ${test.links}` +
        `${test.about ? ` (${test.about})` : ""}, since ${clock.format(new Date(test.begun_s * 1000))}`);
      byId("tests").replaceChildren(...(said.length ? said : ["No test runs."]).map(text => element("li", text)));
    }
    if (news.hosts) {
      hosts = news.hosts;
      options(byId("host"), Object.keys(hosts));
      drawHost();
    }
  }

  function drawAll() {
    drawLink();
    for (const [id, chart] of charts) drawChart(id, chart);
    if (!byId("live").hidden) drawHost();
  }

  byId("link").addEventListener("change", drawLink);
  byId("host").addEventListener("change", drawHost);
  dark.addEventListener("change", drawAll);
  if (byId("data")) {
    show(JSON.parse(byId("data").textContent));
    document.body.dataset.ready = "yes";
  } else {
    byId("live").hidden = false;
    live.follow(show, "Connected: this page follows what is measured.");
  }
})();
