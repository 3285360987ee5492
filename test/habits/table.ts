import { inColumns } from '../kit/table'
import { BREACHES } from './judge'
import type { LifeReport } from './life'

/** One line for each habit, and their sum. */
export function tableOf(reports: readonly LifeReport[]): string[] {
  const names = [...new Set(reports.map(({ habit }) => habit))]
  const rows = names.map((name) => [name, ...cells(reports.filter(({ habit }) => habit === name))])
  const heading = [
    'HABIT',
    'KILLS',
    'RESUMES',
    ...BREACHES.map((kind) => kind.toUpperCase()),
    'MOST LOST',
    'UPLOADS/SAVE',
  ]
  const lines = [heading, ...rows, ['TOTAL', ...cells(reports)]]
  return inColumns(lines, 'right')
}

function cells(reports: readonly LifeReport[]): string[] {
  const sum = (of: (report: LifeReport) => number): number =>
    reports.reduce((total, report) => total + of(report), 0)
  const counts = BREACHES.map((kind) =>
    sum(({ breaches }) => breaches.filter((breach) => breach.kind === kind).length),
  )
  const saves = sum((report) => report.saves)
  const ratio = saves === 0 ? '-' : (sum((report) => report.uploads) / saves).toFixed(1)
  const most = Math.max(0, ...reports.map(({ savesLostMax }) => savesLostMax))
  return [sum(({ kills }) => kills), sum(({ resumes }) => resumes), ...counts, most, ratio].map(String)
}
