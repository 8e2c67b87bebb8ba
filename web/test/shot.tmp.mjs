import { browse } from './browser.mjs';
const [,, file, out, scheme='light', width='1100', check='0'] = process.argv;
const { context, end } = await browse({ colorScheme: scheme, viewport: { width: Number(width), height: 900 } });
const page = await context.newPage();
page.on('console', m => console.log('console', m.text())); page.on('pageerror', e => console.log('error', e));
await page.goto('file:///work/h_web/web/index.html');
await page.screenshot({ path: out + '-empty.png' });
await page.setInputFiles('#file', file);
await page.waitForFunction(() => document.getElementById('busy').textContent === '' , null, {timeout: 20000});
await page.waitForTimeout(200);
console.log(await page.textContent('#message'), await page.textContent('#privacy'));
if (await page.isVisible('#key')) {
  await page.fill('#key', process.env.KEY ?? '5'); await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.getElementById('found').textContent !== '' || document.getElementById('message').textContent !== '');
  console.log(await page.textContent('#found'), await page.textContent('#message'));
  await page.click('#range button'); await page.waitForSelector('#page:not([hidden])');
  await page.click('#sample'); await page.waitForSelector('figure');
}
await page.click('#check'); 
await page.waitForFunction(() => document.getElementById('verdict').textContent !== '', null, {timeout: 60000});
console.log(await page.textContent('#verdict'));
await page.screenshot({ path: out + '.png', fullPage: true }); await page.evaluate(()=>scrollTo(0,Number(300))); await page.screenshot({ path: out + '-v1.png' }); await page.evaluate(()=>scrollTo(0,1150)); await page.screenshot({ path: out + '-v2.png' });await page.evaluate(()=>scrollTo(0,1e6)); await page.screenshot({ path: out + '-v3.png' });
await end();
