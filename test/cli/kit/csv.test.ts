import { describe, expect, it } from '@jest/globals'
import { csvRow } from '../../../cli/kit/csv'

describe('a row of CSV', () => {
  it.each([
    ['plain text', 'job-a', 'job-a'],
    ['a comma', 'a,b', '"a,b"'],
    ['a quotation mark', 'a"b', '"a""b"'],
    ['a formula', '=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
    ['a formula with plus', '+1+cmd', `"'+1+cmd"`],
    ['a formula with minus', '-1+1', `"'-1+1"`],
    ['a formula with at', '@SUM(A1)', `"'@SUM(A1)"`],
    ['a formula after a tab', '\t=1', `"'␉=1"`],
    ['a formula after a carriage return', '\r=1', `"'␍=1"`],
    ['a formula after a newline', 'a\n=1', 'a␊=1'],
    ['a formula after a space', ' =1', `"' =1"`],
    ['a formula after a semicolon, which some spreadsheets split at', 'a; =1;-2', `a;' =1;'-2`],
    ['a formula in quotation marks after a semicolon', 'a;"=1;b', `"a;'""=1;b"`],
    ['a formula with a wide sign', '＝1', `"'＝1"`],
    ['a negative number', '-1.5', '-1.5'],
    ['a number with a sign and an exponent', '+1e-9', '+1e-9'],
    ['nothing', '', ''],
    ['a colour', 'a\u001b[31mb', 'a␛[31mb'],
  ])('has a cell for %s', (_what, text, cell) => {
    expect(csvRow(['x', text, '1'])).toBe(`x,${cell},1`)
  })
})
