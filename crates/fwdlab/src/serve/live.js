// Follows the events of a session. Only text is put into the page, never markup.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const by = id => document.getElementById(id);
  const SVG = 'http://www.w3.org/2000/svg';
  const SPAN_MS = 120000;
  // Pictures fill the available width, so that their text has the same size everywhere.
  const room = () => Math.max(320, by('course').clientWidth || 960);
  let width = 960;
  const svg = (name, attributes, text) => {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const pps = rate => {
    const [unit, by] = rate >= 1e6 ? ['Mpps', 1e6] : rate >= 1e3 ? ['kpps', 1e3] : ['pps', 1];
    return (rate / by).toPrecision(3) + ' ' + unit;
  };
  const print = value => data.unit === 'pps' ? pps(value) : `${value.toFixed(1)} ${data.unit}`;
  // The next of 1, 2, 5 times a power of ten.
  const nice = top => {
    const power = 10 ** Math.floor(Math.log10(top || 1));
    return [1, 2, 5, 10].map(n => n * power).find(n => n >= top);
  };

  let rates, done, current, total, step, label, stage;
  const reset = () => {
    rates = []; current = null; step = ''; label = ''; stage = '';
    total = data.runs.length;
    done = new Map(data.done.map(run => [run.run, run]));
    by('told').replaceChildren();
    by('doubts').replaceChildren();
    for (const run of data.done) doubted(run);
  };
  const variantOf = new Map(data.runs.map(run => [run.run, run]));

  const frame = (height, top) => {
    const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img' });
    for (let i = 0; i <= 4; i++) {
      const y = height - 24 - (height - 40) * i / 4;
      picture.append(svg('line', { class: 'axis', x1: 80, x2: width - 10, y1: y, y2: y }),
        svg('text', { x: 74, y: y + 4, 'text-anchor': 'end' }, pps(top * i / 4)));
    }
    return picture;
  };

  const drawCourse = () => {
    const height = 260, last = rates.length ? rates[rates.length - 1].at_ms : 0;
    const shown = rates.filter(rate => rate.at_ms > last - SPAN_MS);
    if (!shown.length) {
      by('course').textContent = 'The rates of the last two minutes stand here while packets flow.';
      return;
    }
    const top = nice(Math.max(1, ...shown.map(rate => Math.max(rate.offered_pps, rate.forwarded_pps))));
    const picture = frame(height, top);
    picture.append(svg('title', {}, 'Offered and forwarded rate over the last two minutes'));
    // A session that has just begun is shown at its full width.
    const span = Math.min(SPAN_MS, Math.max(20000, last - shown[0].at_ms));
    const x = at => 80 + (width - 90) * (1 - (last - at) / span);
    const y = rate => height - 24 - (height - 40) * rate / top;
    for (const name of ['offered', 'forwarded']) {
      let path = '', before, free = 0;
      for (const rate of shown) {
        // Nothing is sent between two runs: the line is interrupted.
        const gap = !before || rate.label !== before.label || rate.at_ms - before.at_ms > 2000;
        // A single rate is a point.
        path += `${gap ? 'M' : 'L'}${x(rate.at_ms).toFixed(1)} ${y(rate[name + '_pps']).toFixed(1)}${gap ? 'h.1' : ''}`;
        const at = x(rate.at_ms), end = at + 7 * rate.label.length;
        const isNew = !before || rate.label !== before.label;
        // Not every short run has room for its name.
        if (isNew && name === 'forwarded' && at >= free && end < width) {
          picture.append(svg('text', { x: at, y: height - 6 }, rate.label));
          free = end + 8;
        }
        before = rate;
      }
      picture.append(svg('path', { class: name, d: path }));
    }
    by('course').replaceChildren(picture);
  };

  // Round numbers from one end to the other, about four.
  const ticks = (low, high) => {
    const step = nice((high - low) / 5), found = [];
    for (let n = Math.ceil(low / step); n * step <= high; n++) found.push(n * step);
    return found;
  };
  const isDoubtful = run => run.doubts.length > 0;

  const drawRuns = () => {
    const row = 26, height = row * data.variants.length + 34;
    const known = [...done.values()].filter(run => run.value !== null);
    const all = known.map(run => run.value);
    const high = Math.max(...all), low = Math.min(...all);
    const edge = (high - low || high || 1) * 0.05;
    const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img' });
    picture.append(svg('title', {}, 'Forwarded packets per second of each run, by variant'));
    const left = Math.min(260, Math.round(0.36 * width)), letters = Math.floor(left / 7);
    const x = rate => left + (width - left - 20) * (rate - low + edge) / (high - low + 2 * edge);
    if (all.length) {
      let free = 0;
      for (const rate of ticks(low - edge, high + edge)) {
        const at = x(rate), text = print(rate), half = 3.5 * text.length;
        picture.append(svg('line', { class: 'axis', x1: at, x2: at, y1: 4, y2: height - 22 }));
        if (at - half < free || at + half > width) continue;
        picture.append(svg('text', { x: at, y: height - 8, 'text-anchor': 'middle' }, text));
        free = at + half + 8;
      }
    }
    data.variants.forEach((name, variant) => {
      const y = 18 + row * variant;
      const text = svg('text', { x: 4, y: y + 4 }, name.length > letters ? name.slice(0, letters - 1) + '…' : name);
      text.append(svg('title', {}, name));
      picture.append(text, svg('line', { class: 'axis', x1: left, x2: width - 10, y1: y, y2: y }));
    });
    for (const run of known) {
      const planned = variantOf.get(run.run);
      if (!planned) continue;
      const at = x(run.value), y = 18 + row * planned.variant;
      const point = isDoubtful(run)
        ? svg('path', { class: 'doubt', d: `M${at} ${y - 7}l7 12h-14z` })
        : svg('circle', { cx: at, cy: y, r: 5 });
      point.append(svg('title', {}, `run ${run.run + 1}, block ${planned.block + 1}: ${run.figure}`));
      picture.append(point);
    }
    by('runs').replaceChildren(picture);
  };

  const drawOrder = () => by('order').replaceChildren(...data.runs.map(run => {
    const square = document.createElement('i'), found = done.get(run.run);
    const doubts = found && isDoubtful(found);
    square.className = [found ? (doubts ? 'doubt' : 'done') : '', run.run === current ? 'current' : ''].join(' ');
    square.textContent = doubts ? '!' : '';
    square.title = `run ${run.run + 1}, block ${run.block + 1}: ${data.variants[run.variant]}` +
      (found ? `, ${found.figure}` : '') + (doubts ? `; ${found.doubts.join('; ')}` : '');
    return square;
  }));

  const tell = (list, text) => {
    const item = document.createElement('li');
    item.textContent = text;
    by(list).prepend(item);
  };
  const doubted = run => {
    const planned = variantOf.get(run.run);
    for (const doubt of run.doubts)
      tell('doubts', `run ${run.run + 1}${planned ? ', ' + data.variants[planned.variant] : ''}: ${doubt}`);
  };

  const draw = () => {
    by('doing').textContent = [stage, label, step].filter(Boolean).join(' · ');
    by('progress').textContent = `${done.size} of ${total} runs`;
    const last = rates[rates.length - 1];
    by('rates').textContent = last && current !== null
      ? `offered ${pps(last.offered_pps)}, forwarded ${pps(last.forwarded_pps)}` : '';
    width = room();
    drawCourse(); drawRuns(); drawOrder();
  };
  // Past events arrive together and are drawn once.
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => { waiting = false; draw(); }, 100);
  };

  const state = text => { by('state').textContent = text; };
  const on = {
    reset,
    begin: event => { total = event.runs; state('running'); },
    stage: event => { stage = event.stage; label = event.label; current = null; },
    run: event => { current = event.run; stage = event.stage; label = event.label; },
    step: event => { step = event.step; },
    rates: event => { rates.push(event); if (rates.length > 4000) rates.splice(0, 2000); },
    trial: event => tell('told', `${label}: ${event.said}`),
    note: event => tell('told', event.text),
    done: event => {
      // The store has more details of runs stored before the page was loaded.
      if (!done.has(event.run)) doubted(event);
      if (!data.done.some(run => run.run === event.run)) done.set(event.run, event);
    },
    end: () => { state('ended'); current = null; step = ''; stage = ''; label = ''; },
    gone: () => { state('ended without a word'); current = null; },
  };
  reset(); draw();
  addEventListener('resize', later);
  const source = new EventSource(data.events);
  source.onopen = () => { state('not begun'); };
  source.onerror = () => { state('not connected'); };
  source.onmessage = message => {
    const event = JSON.parse(message.data);
    if (on[event.event]) on[event.event](event);
    later();
  };
})();
