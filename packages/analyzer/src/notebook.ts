/** Notebooks: their code cells as one Python text whose lines are those of the file. */

import { z } from 'zod'

/** The part of a notebook that matters here. Source: https://nbformat.readthedocs.io/en/latest/format_description.html */
const notebook = z.object({
  nbformat: z.number().nullish(),
  metadata: z
    .object({
      kernelspec: z.object({ language: z.string().nullish(), name: z.string().nullish() }).nullish(),
      language_info: z.object({ name: z.string().nullish() }).nullish(),
    })
    .nullish(),
  cells: z
    .array(
      z.object({ cell_type: z.string(), source: z.union([z.string(), z.array(z.string())]).default('') }),
    )
    .optional(),
})

type Cell = NonNullable<z.infer<typeof notebook>['cells']>[number]

/** The code of a notebook, or the reason for its absence, which completes "<file> ...". */
export type NotebookCode = { code: string } | { problem: string }

const OLDEST_FORMAT = 4

/** Commands of the notebook itself (`%magic`, `!command`) become empty lines. */
export function notebookCode(text: string): NotebookCode {
  const read = parsed(text)
  if ('problem' in read) return read
  const { nbformat, metadata, cells } = read
  if (typeof nbformat === 'number' && nbformat < OLDEST_FORMAT)
    return {
      problem: `has the notebook format ${nbformat}: convert it with jupyter nbconvert --to notebook --inplace`,
    }
  const language =
    metadata?.kernelspec?.language ?? metadata?.language_info?.name ?? metadata?.kernelspec?.name
  if (typeof language === 'string' && !language.toLowerCase().includes('python'))
    return { problem: `is a notebook for ${language}, not for Python` }
  if (cells === undefined) return { problem: 'is not a notebook: it has no cells' }
  const code = cells.filter((cell) => cell.cell_type === 'code')
  if (code.every((cell) => codeOf(cell).every((line) => line.trim() === '')))
    return { problem: 'is a notebook without code' }
  return { code: linesOf(text, code) }
}

function parsed(text: string): z.infer<typeof notebook> | { problem: string } {
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch {
    return { problem: 'is not a notebook: it is not JSON' }
  }
  const read = notebook.safeParse(content)
  if (read.success) return read.data
  const [issue] = read.error.issues
  return { problem: `is not a notebook: ${issue?.path.join('.') ?? ''} has a wrong type` }
}

/** The lines of the code, in the rows of the file that hold them. */
function linesOf(text: string, cells: readonly Cell[]): string {
  const rows = text.split('\n')
  const lines: string[] = []
  let row = 0
  for (const cell of cells) {
    const code = codeOf(cell)
    if (code.some((line) => line.startsWith('%%') && !PYTHON_CELLS.has(line.trim().split(' ')[0]!))) continue
    for (const line of code) {
      const at = rowOf(rows, line, row)
      if (at !== undefined) row = at
      while (lines.length < row) lines.push('')
      lines.push(isCommand(line) ? '' : line)
      row = lines.length
    }
  }
  return lines.join('\n')
}

/** Magic commands whose cell is still Python. */
const PYTHON_CELLS = new Set(['%%time', '%%timeit', '%%capture'])

function codeOf({ source }: Cell): string[] {
  return (typeof source === 'string' ? source : source.join('')).split('\n')
}

const isCommand = (line: string): boolean => ['%', '!', '?'].some((mark) => line.trimStart().startsWith(mark))

/** Notebooks are written with one line of code per line of JSON; `undefined` if this one is not. */
function rowOf(rows: readonly string[], line: string, from: number): number | undefined {
  if (line.trim() === '') return undefined
  const written = JSON.stringify(line).slice(0, -1)
  for (let at = from; at < rows.length; at += 1) if (rows[at]!.trimStart().startsWith(written)) return at
  return undefined
}
