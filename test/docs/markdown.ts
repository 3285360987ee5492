/** What tests need to know of a page in Markdown. */

export interface Block {
  /** As written after the fence; empty without one. */
  language: string
  text: string
}

/** Fenced blocks of a page, in their order, also those in lists; of one language, when one is given. */
export function blocksOf(page: string, language?: string): Block[] {
  const blocks = [...page.matchAll(/^( *)```([\w-]*)\n([^]*?)^\1```$/gm)].map(
    ([, indent, written, text]) => ({
      language: written!,
      text: text!.replaceAll(new RegExp(`^${indent!}`, 'gm'), ''),
    }),
  )
  return language === undefined ? blocks : blocks.filter((block) => block.language === language)
}

/** Anchors of the headings, as GitHub and VitePress make them for plain words. */
export function slugsOf(page: string): string[] {
  return [...withoutBlocks(page).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[`*]/g, '')
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s+/g, '-'),
  )
}

/** Words of the prose and the tables; code blocks and rules of tables are none. */
export function wordsOf(page: string): string[] {
  return withoutBlocks(page)
    .split(/\s+/)
    .filter((word) => /[\p{L}\p{N}]/u.test(word))
}

function withoutBlocks(page: string): string {
  return page.replace(/^```[^]*?^```$/gm, '')
}
