// Tables that are sorted by a click on a head and filtered by words or by what changed; sections
// that open when a link leads into them. Nothing is fetched, nothing is kept.
(() => {
  'use strict';
  const number = cell => {
    const text = cell.dataset.v ?? cell.textContent.replace(/[\s\u202f<>[]/g, '');
    const value = parseFloat(text);
    return Number.isNaN(value) ? -Infinity : value;
  };
  const order = (head, at, down) => {
    const isNumber = head.classList.contains('n');
    return (a, b) => {
      const [x, y] = [a.cells[at], b.cells[at]];
      const found = isNumber || x.dataset.v !== undefined
        ? number(x) - number(y)
        : x.textContent.localeCompare(y.textContent, undefined, { numeric: true });
      return down ? -found : found;
    };
  };
  const sortable = table => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      if (!head.textContent) return;
      head.tabIndex = 0;
      const sort = () => {
        // Numbers begin with the largest, words with the first.
        const first = head.classList.contains('n') ? 'descending' : 'ascending';
        const other = first === 'ascending' ? 'descending' : 'ascending';
        const now = head.getAttribute('aria-sort') === first ? other : first;
        heads.forEach(each => each.removeAttribute('aria-sort'));
        head.setAttribute('aria-sort', now);
        const rows = [...table.tBodies[0].rows].sort(order(head, at, now === 'descending'));
        table.tBodies[0].append(...rows);
      };
      head.addEventListener('click', sort);
      head.addEventListener('keydown', event => {
        if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); sort(); }
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
