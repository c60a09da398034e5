// Two small charts on a canvas: a step line that is filled, and dots. A library of charts would be larger than the page.
import { clockText, element } from "./text.ts";

const LEFT = 48;
const BOTTOM = 22;
const TOP = 8;

export interface Frame {
  from: number; // µs
  to: number;
  max: number; // of the y axis
  scale: (value: number) => number; // of a value: 0 at the bottom, 1 at the top
  ticks: { at: number; text: string }[];
}

export class Chart {
  readonly root: HTMLElement;
  private readonly canvas = element("canvas", { role: "img" });

  constructor(title: string, private readonly note: HTMLElement) {
    this.root = element("figure", { class: "chart" }, element("figcaption", {}, title), this.canvas, note);
  }

  /** What a screen reader says of the picture stands below it, too. */
  draw(frame: Frame, text: string, paint: (c: CanvasRenderingContext2D, x: (t: number) => number, y: (v: number) => number, style: CSSStyleDeclaration) => void): void {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (width === 0) return;
    if (this.note.textContent !== text) this.note.textContent = text;
    this.canvas.setAttribute("aria-label", text);
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio)) this.canvas.width = Math.round(width * ratio);
    if (this.canvas.height !== Math.round(height * ratio)) this.canvas.height = Math.round(height * ratio);
    const c = this.canvas.getContext("2d")!;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    const style = getComputedStyle(document.documentElement);
    const x = (t: number) => LEFT + ((t - frame.from) / (frame.to - frame.from)) * (width - LEFT - 4);
    const y = (v: number) => height - BOTTOM - frame.scale(v) * (height - BOTTOM - TOP);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (const tick of frame.ticks) {
      c.fillStyle = style.getPropertyValue("--edge");
      c.fillRect(LEFT, Math.round(y(tick.at)), width - LEFT - 4, 1);
      c.fillStyle = style.getPropertyValue("--faint");
      c.textAlign = "right";
      c.fillText(tick.text, LEFT - 6, y(tick.at));
    }
    const count = Math.max(2, Math.floor((width - LEFT) / 110));
    for (let i = 0; i <= count; ++i) {
      const t = frame.from + ((frame.to - frame.from) * i) / count;
      c.textAlign = i === 0 ? "left" : i === count ? "right" : "center";
      c.fillText(clockText(t).slice(0, frame.to - frame.from < 600e6 ? 8 : 5), x(t), height - BOTTOM / 2);
    }
    c.save();
    c.beginPath();
    c.rect(LEFT, 0, width - LEFT - 4, height - BOTTOM + 1);
    c.clip();
    paint(c, x, y, style);
    c.restore();
  }
}
