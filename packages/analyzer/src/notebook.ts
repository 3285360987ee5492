/** Notebooks: their code cells as one Python text whose lines are those of the file. */

interface Cell {
  cell_type?: unknown
  source?: unknown
}

/** `undefined` if the text is not a notebook. Commands of the notebook itself (`%magic`, `!command`) become empty lines. */
export function notebookCode(text: string): string | undefined {
  let cells: Cell[]
  try {
    const notebook = JSON.parse(text) as { cells?: unknown } | null
    if (notebook === null || !Array.isArray(notebook.cells)) return undefined
    cells = notebook.cells as Cell[]
  } catch {
    return undefined
  }
  const rows = text.split('\n')
  const lines: string[] = []
  let row = 0
  for (const cell of cells) {
    if (cell.cell_type !== 'code') continue
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
  const text = Array.isArray(source) ? source.join('') : typeof source === 'string' ? source : ''
  return text.split('\n')
}

const isCommand = (line: string): boolean => ['%', '!', '?'].some((mark) => line.trimStart().startsWith(mark))

/** Notebooks are written with one line of code per line of JSON; `undefined` if this one is not. */
function rowOf(rows: readonly string[], line: string, from: number): number | undefined {
  if (line.trim() === '') return undefined
  const written = JSON.stringify(line).slice(0, -1)
  for (let at = from; at < rows.length; at += 1) if (rows[at]!.trimStart().startsWith(written)) return at
  return undefined
}
