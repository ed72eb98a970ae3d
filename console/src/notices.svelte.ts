// What was done, said once and read out by a screen reader.

const SHOWN_MS = 8_000;
const NOTICES_MAX = 4;

interface Notice {
  number: number;
  text: string;
}

class Notices {
  shown = $state.raw<Notice[]>([]);
  #last = 0;

  say(text: string): void {
    const notice = { number: ++this.#last, text };
    this.shown = [...this.shown, notice].slice(-NOTICES_MAX);
    setTimeout(() => this.drop(notice.number), SHOWN_MS);
  }

  drop(number: number): void {
    this.shown = this.shown.filter((notice) => notice.number !== number);
  }
}

export const notices = new Notices();
