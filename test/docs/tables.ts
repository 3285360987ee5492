import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export function pageOf(name: string): string {
  return readFileSync(join(__dirname, '..', '..', 'docs', name), 'utf8')
}

/** Rows of the table below a heading, each as its cells. */
export function tableOf(page: string, heading: string): string[][] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? ''
  const [, , ...rows] = section.split('\n').filter((line) => line.startsWith('|'))
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

/** What stands in backquotes. */
export const namesIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)

export const firstColumnOf = (page: string, heading: string): string[] =>
  tableOf(page, heading).flatMap(([cell = '']) => namesIn(cell))
