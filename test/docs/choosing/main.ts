import { writeFileSync } from 'node:fs'
import { CHOOSING_PAGE, choosingPage } from './page'

/** `npm run choosing`; test/docs/choosing.test.ts fails when the page is out of date. */
void choosingPage().then((text) => writeFileSync(CHOOSING_PAGE, text))
