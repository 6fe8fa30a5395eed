// Sorts tables by the buttons in their heads, filters them by words or by change, and opens sections
// that a link leads into. Fetches nothing and stores nothing.
(() => {
  'use strict';
  // The value of a cell; null for a dash, which is sorted behind all values.
  const number = cell => {
    const text = cell.dataset.v ?? cell.textContent.replace(/[\s\u202f<>[]/g, '');
    const value = parseFloat(text);
    return Number.isNaN(value) ? null : value;
  };
  const words = cell => ['', '-'].includes(cell.textContent) ? null : cell.textContent;
  const sort = (rows, at, isNumber, down) => {
    const value = isNumber ? number : words;
    const order = isNumber
      ? (x, y) => x - y
      : (x, y) => x.localeCompare(y, undefined, { numeric: true });
    const keyed = rows.map(row => [value(row.cells[at]), row]);
    keyed.sort(([x], [y]) => x === null || y === null
      ? (x === null) - (y === null)
      : down ? order(y, x) : order(x, y));
    return keyed.map(([, row]) => row);
  };
  const sortable = table => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      if (!head.textContent) return;
      const button = document.createElement('button');
      button.type = 'button';
      button.append(...head.childNodes);
      head.append(button);
      head.addEventListener('click', () => {
        const rows = [...table.tBodies[0].rows];
        const isNumber = head.classList.contains('n')
          || rows.some(row => row.cells[at].dataset.v !== undefined);
        // Numbers begin with the largest, words with the first.
        const first = head.classList.contains('n') ? 'descending' : 'ascending';
        const other = first === 'ascending' ? 'descending' : 'ascending';
        const now = head.getAttribute('aria-sort') === first ? other : first;
        heads.forEach(each => each.removeAttribute('aria-sort'));
        head.setAttribute('aria-sort', now);
        table.tBodies[0].append(...sort(rows, at, isNumber, now === 'descending'));
      });
    });
  };
  const filtered = table => {
    const rows = [...table.tBodies[0].rows];
    const same = rows.filter(row => row.classList.contains('same'));
    const canHide = same.length > 0 && same.length < rows.length;
    if (rows.length < 12 && !canHide) return;
    const bar = document.createElement('p');
    bar.className = 'filter';
    const words = document.createElement('input');
    words.type = 'search';
    words.placeholder = 'only rows with these words';
    words.setAttribute('aria-label', words.placeholder);
    const count = document.createElement('span');
    count.setAttribute('role', 'status');
    const changed = document.createElement('input');
    changed.type = 'checkbox';
    const apply = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(word => word);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = (changed.checked && row.classList.contains('same'))
          || !wanted.every(word => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = shown < rows.length ? `${shown} of ${rows.length} rows` : '';
    };
    if (rows.length >= 12) bar.append(words, ' ');
    if (canHide) {
      const label = document.createElement('label');
      label.append(changed, ' only what changed');
      bar.append(label, ' ');
    }
    bar.append(count);
    bar.addEventListener('input', apply);
    table.parentElement.before(bar);
  };
  for (const table of document.querySelectorAll('.scroll > table')) {
    if (table.tBodies[0].rows.length > 1) { sortable(table); filtered(table); }
  }
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    for (let fold = target && target.closest('details'); fold;
      fold = fold.parentElement.closest('details')) fold.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener('hashchange', open);
  open();
})();
