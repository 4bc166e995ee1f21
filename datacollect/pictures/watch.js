"use strict";
(() => {
  const tree = JSON.parse(document.getElementById("data").textContent);
  const main = document.querySelector("main"), choice = document.getElementById("link");
  const config = {responsive: true, displaylogo: false};

  function chart(id) {
    const div = document.createElement("div");
    div.className = "chart";
    div.id = id;
    main.append(div);
    return div;
  }

  function draw(div, title, data, layout) {
    // Narrow screens have room for few words in a line.
    const words = innerWidth < 640 ? title.replace(": ", ":<br>") : title;
    return Plotly.react(div, data, {
      title: {text: words, font: {size: 15}}, legend: {orientation: "h", y: -0.25},
      margin: {l: 55, r: 15, t: 70, b: 55}, ...layout}, config);
  }

  function drawLink() {
    const link = tree.links[choice.selectedIndex];
    const over = unit => ({yaxis: {title: {text: unit}, rangemode: "tozero"}, showlegend: true});
    draw(rates, `${link.title}: rates by kind of test`, link.rates, over("Mbit/s"));
    draw(rtt, `${link.title}: round trips`, link.rtt, over("ms"));
  }

  for (const link of tree.links) choice.add(new Option(link.name));
  const rates = chart("rates"), rtt = chart("rtt");
  choice.addEventListener("change", drawLink);
  drawLink();
  tree.charts.forEach((each, i) => draw(chart(`chart-${i}`), each.title, each.data, each.layout));
  document.body.dataset.ready = "yes";
})();
