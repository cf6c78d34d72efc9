// A sheet to find one's way on: land, borders and towns on a canvas, in Mercator's projection, moved by pointer, wheel and
// keys. It needs no server of tiles: the outlines come with the dashboard (Natural Earth), the towns from its own table.
const UNITS = 1000; // in a degree, in outlines.json
const LEAST = 120, MOST = 2 ** 20; // pixels that the whole world is wide: from a stamp to 38 m a pixel
const HALF_EARTH_KM = 20037.5;
const KEYS = { ArrowLeft: [-80, 0], ArrowRight: [80, 0], ArrowUp: [0, -80], ArrowDown: [0, 80] };

// Where a point lies on a world that is one wide and one high: x grows to the east, y to the south.
export const across = (lon) => lon / 360 + 0.5;
export const down = (lat) => {
  const s = Math.sin((Math.max(-85, Math.min(85, lat)) * Math.PI) / 180);
  return 0.5 - Math.log((1 + s) / (1 - s)) / (4 * Math.PI);
};
const width = (west, east) => (east === west ? 0 : (((across(east) - across(west)) % 1) + 1) % 1 || 1); // from -180 to 180 it is a whole world
const lonOf = (x) => ((((x - 0.5) * 360 + 180) % 360) + 360) % 360 - 180;
const latOf = (y) => (Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180) / Math.PI;

// Along a great circle (haversine).
export function kmBetween(a, b) {
  const turn = Math.PI / 180, h = Math.sin(((b.lat - a.lat) * turn) / 2) ** 2 + Math.cos(a.lat * turn) * Math.cos(b.lat * turn) * Math.sin(((b.lon - a.lon) * turn) / 2) ** 2;
  return ((2 * HALF_EARTH_KM) / Math.PI) * Math.asin(Math.min(1, Math.sqrt(h)));
}

// [longitude, latitude, step, step, …] → points on the world, and the box they fill.
function line(numbers) {
  const points = new Float64Array(numbers.length), box = [Infinity, 1, -Infinity, 0];
  let lon = 0, lat = 0;
  for (let i = 0; i < numbers.length; i += 2) {
    lon += numbers[i]; lat += numbers[i + 1];
    const x = (points[i] = across(lon / UNITS)), y = (points[i + 1] = down(lat / UNITS));
    box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y); box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y);
  }
  return { points, box };
}

// canvas: filled by its own style (fill: land, stroke: borders, color: names). moved(zoomed): the view is another now.
// namesOf(area): asked for towns once it rests.
export function chart(canvas, moved, namesOf) {
  const pen = canvas.getContext("2d");
  let outlines = { land: [], borders: [] }, towns = [], frame = null, marks = []; // frame: the area that was asked for; marks: what lies on the sheet
  let at = { x: 0.5, y: 0.5, k: LEAST }; // the middle on the world, and how many pixels wide that is
  let due = 0, resting = 0, asked = 0;

  const size = () => [canvas.clientWidth, canvas.clientHeight];

  // Where a point stands on the canvas, in pixels: of the worlds side by side on the nearest.
  function place(lat, lon) {
    const [w, h] = size();
    let x = across(lon) - at.x;
    x -= Math.round(x);
    return [w / 2 + x * at.k, h / 2 + (down(lat) - at.y) * at.k];
  }

  function go(x, y, k) {
    const zoomed = k !== at.k;
    at = { x: x - Math.floor(x), y: Math.max(0, Math.min(1, y)), k: Math.max(LEAST, Math.min(MOST, k)) };
    draw();
    moved(zoomed);
    clearTimeout(resting);
    resting = setTimeout(name, 200);
  }

  // Zoom so that what is under a point of the canvas stays under it.
  function zoom(factor, px = canvas.clientWidth / 2, py = canvas.clientHeight / 2) {
    const [w, h] = size(), k = Math.max(LEAST, Math.min(MOST, at.k * factor)), by = 1 / at.k - 1 / k;
    go(at.x + (px - w / 2) * by, at.y + (py - h / 2) * by, k);
  }

  // What is to be seen: south, west, north, east.
  function box() {
    const [w, h] = size(), wide = Math.min(0.4999, w / 2 / at.k), high = h / 2 / at.k;
    return [latOf(Math.min(1, at.y + high)), lonOf(at.x - wide), latOf(Math.max(0, at.y - high)), lonOf(at.x + wide)];
  }

  // Show a box whole; false while there is no room to show anything.
  function fit([south, west, north, east]) {
    const [w, h] = size(), wide = width(west, east), high = down(south) - down(north);
    if (w && h) go(across(west) + wide / 2, down(north) + high / 2, Math.min(w / Math.max(wide, 1e-6), h / Math.max(high, 1e-6), MOST) * 0.8);
    return Boolean(w && h);
  }

  async function name() {
    const question = ++asked, found = await namesOf(box());
    if (question !== asked) return;
    towns = found;
    draw();
  }

  function draw() { due ||= requestAnimationFrame(paint); }

  function paint() {
    due = 0;
    const [w, h] = size(), dots = devicePixelRatio || 1, style = getComputedStyle(canvas);
    if (canvas.width !== Math.round(w * dots) || canvas.height !== Math.round(h * dots)) { canvas.width = Math.round(w * dots); canvas.height = Math.round(h * dots); }
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.clearRect(0, 0, w, h);
    trace(outlines.land, w, h);
    pen.fillStyle = style.fill;
    pen.fill("evenodd");
    trace(outlines.borders, w, h);
    pen.strokeStyle = style.stroke;
    pen.stroke();
    if (frame) {
      const [x, y] = place(frame[2], frame[1]), wide = width(frame[1], frame[3]);
      pen.setLineDash([5, 4]);
      pen.strokeStyle = style.color;
      pen.strokeRect(x, y, wide * at.k, (down(frame[0]) - down(frame[2])) * at.k);
      pen.setLineDash([]);
    }
    label(style, w, h);
    measure(style, h);
  }

  // The lines that are to be seen, as one path; points closer than half a pixel are one.
  function trace(lines, w, h) {
    const left = at.x - w / 2 / at.k, top = at.y - h / 2 / at.k, right = at.x + w / 2 / at.k, bottom = at.y + h / 2 / at.k;
    pen.beginPath();
    for (let world = Math.floor(left) - 1; world <= Math.floor(right) + 1; world++) { // some outlines reach beyond the date line
      for (const { points, box } of lines) {
        if (box[0] + world > right || box[2] + world < left || box[1] > bottom || box[3] < top) continue;
        let px = NaN, py = NaN;
        for (let i = 0; i < points.length; i += 2) {
          const x = (points[i] + world - left) * at.k, y = (points[i + 1] - top) * at.k;
          if (Math.abs(x - px) < 0.5 && Math.abs(y - py) < 0.5 && i < points.length - 2) continue;
          if (i) pen.lineTo(x, y);
          else pen.moveTo(x, y);
          px = x; py = y;
        }
      }
    }
  }

  // Names of towns, the biggest first; one that would lie on another, or on a mark, is left out. A town under a mark has
  // its name beside it.
  function label(style, w, h) {
    const discs = marks.map(({ lat, lon, r }) => [...place(lat, lon), r]), taken = discs.map(([x, y, r]) => [x - r, y - r, x + r, y + r]);
    pen.font = `11px ${style.fontFamily}`;
    pen.fillStyle = style.color;
    for (const town of towns) {
      const [px, py] = place(town.lat, town.lon), under = discs.find(([x, y, r]) => Math.hypot(x - px, y - py) < r), [x, y] = under ? [under[0] + under[2], under[1]] : [px, py];
      const wide = pen.measureText(town.name).width, mine = [under ? x + 1 : x - 4, y - 8, x + wide + 10, y + 8];
      if (x < 0 || y < 8 || x + wide > w || y > h - 24 || taken.some((o) => mine[0] < o[2] && o[0] < mine[2] && mine[1] < o[3] && o[1] < mine[3])) continue;
      taken.push(mine);
      if (!under) pen.fillRect(x - 1.5, y - 1.5, 3, 3);
      pen.fillText(town.name, x + 5, y + 4);
    }
  }

  // How far a hundred pixels or so reach here.
  function measure(style, h) {
    const km = (2 * HALF_EARTH_KM * Math.cos((latOf(at.y) * Math.PI) / 180)) / at.k, most = 110 * km, tens = 10 ** Math.floor(Math.log10(most));
    const told = [5, 2, 1].map((n) => n * tens).find((n) => n <= most), wide = told / km;
    pen.strokeStyle = pen.fillStyle = style.color;
    pen.strokeRect(10, h - 10, wide, 0);
    pen.fillText(told < 1 ? `${Math.round(told * 1000)} m` : `${told} km`, 10, h - 15);
  }

  const sheet = canvas.parentElement, fingers = new Map(); // marks lie on the sheet too: a drag may begin on one
  const point = (event) => { const { left, top } = canvas.getBoundingClientRect(); return [event.clientX - left, event.clientY - top]; };
  sheet.addEventListener("pointerdown", (event) => {
    if (event.button || event.target.closest(".zoom")) return;
    fingers.set(event.pointerId, point(event));
  });
  sheet.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId), now = point(event);
    if (!before) return;
    if (!event.buttons) return fingers.delete(event.pointerId); // it was let go where nobody told us
    if (event.target === canvas) canvas.setPointerCapture(event.pointerId); // not before it moves: a click on a mark is the mark's
    const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
    fingers.set(event.pointerId, now);
    if (other) zoom(Math.hypot(now[0] - other[0], now[1] - other[1]) / Math.max(1, Math.hypot(before[0] - other[0], before[1] - other[1])), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    else go(at.x - (now[0] - before[0]) / at.k, at.y - (now[1] - before[1]) / at.k, at.k);
  });
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("dblclick", (event) => zoom(2, ...point(event)));
  sheet.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !sheet.contains(document.activeElement)) return; // who scrolls past does not zoom
    event.preventDefault();
    zoom(2 ** (-event.deltaY / (event.deltaMode ? 6 : 240)), ...point(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's own
    const step = KEYS[event.key], factor = { "+": 2, "=": 2, "-": 0.5 }[event.key];
    if (step) go(at.x + step[0] / at.k, at.y + step[1] / at.k, at.k);
    else if (factor) zoom(factor);
    else return;
    event.preventDefault();
  });
  new ResizeObserver(() => { draw(); moved(true); }).observe(canvas);
  new MutationObserver(draw).observe(document.documentElement, { attributes: true }); // dark or light
  matchMedia("(prefers-color-scheme: light)").addEventListener("change", draw);

  return {
    place, zoom, box, fit,
    frame(area) { frame = area; draw(); },
    marks(discs) { marks = discs; draw(); },
    outlines({ land, borders }) { outlines = { land: land.map(line), borders: borders.map(line) }; draw(); },
  };
}
