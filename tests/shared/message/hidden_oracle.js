() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (above, below) => [0, 1, 2].map((at) => above[at] * above[3] + below[at] * (1 - above[3]));
  const luminance = (colour) => {
    const [red, green, blue] = colour.map((value) => {
      const channel = value / 255;
      return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ancestors = (element) => {
    const chain = [];
    for (let at = element; at; at = at.parentElement) chain.push(at);
    return chain;
  };
  // null: an image lies behind the text, and what colour it has there nobody knows.
  const background = (chain) => {
    let colour = [255, 255, 255];
    for (const element of [...chain].reverse()) {
      const style = getComputedStyle(element);
      if (style.backgroundImage !== "none") return null;
      colour = over(rgba(style.backgroundColor), colour);
    }
    return colour;
  };
  const filterOpacity = (filter) => {
    const found = /opacity\(([\d.]+)(%?)\)/.exec(filter);
    return found ? Number(found[1]) / (found[2] ? 100 : 1) : 1;
  };
  // What lies over a point, topmost first, until something opaque.
  const isOnTop = (element, x, y) => {
    for (const hit of document.elementsFromPoint(x, y)) {
      if (hit === element || element.contains(hit)) return true;
      const style = getComputedStyle(hit);
      if (rgba(style.backgroundColor)[3] > 0.95 && Number(style.opacity) > 0.95) return false;
    }
    return false;
  };
  // A box of its own around the text, since what hangs out of a block is not hit as the block's.
  const isInSight = (node, rectangles) => {
    const run = document.createElement("x-run");
    node.replaceWith(run);
    run.append(node);
    const seen = rectangles.some((box) =>
      [0.1, 0.3, 0.5, 0.7, 0.9].some((share) => isOnTop(run, box.left + box.width * share, box.top + box.height / 2)),
    );
    run.replaceWith(node);
    return seen;
  };
  const sees = (node) => {
    const element = node.parentElement;
    const chain = ancestors(element);
    if (!element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true })) return false;
    const ink = chain.reduce((share, at) => {
      const style = getComputedStyle(at);
      return share * Number(style.opacity) * filterOpacity(style.filter);
    }, 1);
    if (ink <= 0.05) return false;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rectangles = [...range.getClientRects()].filter((box) => box.width > 1 && box.height >= 2);
    if (rectangles.length === 0 || parseFloat(getComputedStyle(element).fontSize) < 2) return false;
    const colour = rgba(getComputedStyle(element).webkitTextFillColor);
    if (colour[3] <= 0.05) return false;
    const behind = background(chain);
    if (behind !== null) {
      const [darker, lighter] = [luminance(over(colour, behind)), luminance(behind)].sort((a, b) => a - b);
      if ((lighter + 0.05) / (darker + 0.05) < 1.15) return false;
    }
    return isInSight(node, rectangles);
  };
  const runs = [];
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  const isText = (node) => node.data.trim() && !node.parentElement.closest("title, style, script, option");
  while (walker.nextNode()) if (isText(walker.currentNode)) runs.push(walker.currentNode);
  return runs.map((node) => ({ text: node.data.trim(), seen: sees(node) }));
}
